// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"path"
	"strings"
	"testing"
)

// A longer file has more than one topic. A line has at most 120 columns, which the linter checks.
func TestFilesAreShort(t *testing.T) {
	const most = 700
	for _, f := range sourceFiles(t) {
		if lines := strings.Count(f.content, "\n"); f.isGo() && lines > most {
			t.Errorf("%s has %d lines, want at most %d: split it by topic", f.path, lines, most)
		}
	}
}

// mostFiles is the number of files, without tests, that one can keep in mind as the rooms of one package.
const mostFiles = 35

func TestPackagesHaveFewFiles(t *testing.T) {
	files := map[string]int{}
	for _, f := range sourceFiles(t) {
		if f.isGo() && !strings.HasSuffix(f.path, "_test.go") {
			files[path.Dir(f.path)]++
		}
	}
	for directory, n := range files {
		if n > mostFiles {
			t.Errorf("%s has %d files, want at most %d: join those that belong together, or split the package",
				directory, n, mostFiles)
		}
	}
}
