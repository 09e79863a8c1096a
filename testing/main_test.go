// SPDX-License-Identifier: Apache-2.0

package testing_test

import (
	"testing"

	"go.uber.org/goleak"
)

// The kit leaves no goroutine behind.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}
