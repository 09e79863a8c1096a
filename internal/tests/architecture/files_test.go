// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"strings"
	"testing"
)

// A longer file has more than one topic.
func TestFilesAreShort(t *testing.T) {
	const most = 700
	for _, f := range sourceFiles(t) {
		if lines := strings.Count(f.content, "\n"); f.isGo() && lines > most {
			t.Errorf("%s has %d lines, want at most %d: split it by topic", f.path, lines, most)
		}
	}
}
