// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

func TestMigrateExitCodes(t *testing.T) {
	const goMod = "module example.com/m\n\ngo 1.20\n\nrequire reconciler.io/runtime v0.23.0\n"
	for name, c := range map[string]struct {
		args   []string
		source string
		code   int
		stderr string
	}{
		"nothing is left": {
			[]string{"./...", "--diff"}, "var _ = reconcilers.HaltSubReconcilers", 0, "",
		},
		"something is left": {
			[]string{"--dry-run"}, "var _ = reconcilers.IndexControllersOfType", 3, "",
		},
		"an unknown version": {
			[]string{"--from", "v7"}, "var _ = reconcilers.HaltSubReconcilers", 1, "--from must be one of",
		},
		"files that are not committed": {
			nil, "var _ = reconcilers.HaltSubReconcilers", 1, "nothing was changed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			source := "package m\n\nimport \"reconciler.io/runtime/reconcilers\"\n\n" + c.source + "\n"
			for file, content := range map[string]string{"go.mod": goMod, "m.go": source} {
				if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), append([]string{"migrate"}, c.args...), &stdout, &stderr)
			if code != c.code || !strings.Contains(stderr.String(), c.stderr) {
				t.Errorf("exit code %d, want %d; want %q in:\n%s%s", code, c.code, c.stderr, stderr.String(), stdout.String())
			}
			if left, err := os.ReadFile("m.go"); err != nil || string(left) != source {
				t.Errorf("m.go was changed: %v\n%s", err, left)
			}
		})
	}
}
