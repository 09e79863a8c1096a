// SPDX-License-Identifier: Apache-2.0

package testing_test

import "testing"

// Examples cannot be run as such: they have no test to fail.
func TestWiringExamples(t *testing.T) {
	t.Run("RecordWiring", testPodReaperWiring)
	t.Run("Wiring", testAccounts)
	t.Run("OtherCluster", testMirrorWiring)
}
