// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"strings"
	"testing"
)

// The guide from reconciler.io runtime promises the same behavior except for its rows. Whatever the changelog says of
// package reconcilers is therefore in a row, or noticed only by programs that use it.
func TestMigrationDifferences_Runtime(t *testing.T) {
	const list, guide = "testdata/runtime-differences.txt", "migration/runtime.md"
	classified := map[string]string{}
	for line := range strings.Lines(readFile(t, list)) {
		if item, rows, ok := strings.Cut(strings.TrimSpace(line), " => "); ok {
			classified[item] = rows
		}
	}
	_, changes, _ := strings.Cut(readFile(t, "../CHANGELOG.md"), "#### `reconcilers`\n")
	changes, _, _ = strings.Cut(changes, "\n#")
	used := map[string]bool{}
	for _, item := range strings.Split(changes, "\n- ")[1:] {
		found := ""
		for beginning := range classified {
			if strings.HasPrefix(item, beginning) {
				found, used[beginning] = beginning, true
			}
		}
		if first, _, _ := strings.Cut(item, "\n"); found == "" {
			t.Errorf("%s does not say whether programs that move from reconciler.io runtime notice this: %s", list, first)
		}
	}
	_, differences, _ := strings.Cut(readFile(t, guide), "## What behaves differently on purpose")
	for item, rows := range classified {
		if !used[item] {
			t.Errorf("%s: the changelog has no item %q", list, item)
		}
		for row := range strings.SplitSeq(rows, "; ") {
			if row != "new" && !strings.Contains(differences, "\n| "+row) {
				t.Errorf("%s has no row %q, for %q", guide, row, item)
			}
		}
	}
	if len(used) < 30 {
		t.Errorf("only %d items were found", len(used))
	}
}
