// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"testing"
)

// TestHintTable checks that each row has a hint.
func TestHintTable(t *testing.T) {
	for _, row := range hintTable {
		if row.hint == "" {
			t.Errorf("no hint for %+v", row)
		}
	}
}
