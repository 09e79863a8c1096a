// SPDX-License-Identifier: Apache-2.0

package testing_test

import "testing"

// The tests that the examples show are run.
func TestExamples(t *testing.T) {
	for name, example := range map[string]func(t *testing.T){
		"ReconcilerTests":           testQuotas,
		"ReconcilerTestSuite":       testExpiry,
		"SubReconcilerTests":        testLimits,
		"SubReconcilerTestSuite":    testBackup,
		"AdmissionWebhookTests":     testTeams,
		"AdmissionWebhookTestSuite": testKeys,
	} {
		t.Run(name, example)
	}
}
