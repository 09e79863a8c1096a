// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"testing"

	"go.uber.org/goleak"
)

// The fake API leaves no goroutine behind.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}
