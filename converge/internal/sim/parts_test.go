// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// aRun matches a field or an embedded field of the type of the run.
var aRun = regexp.MustCompile(`(?m)^\t(\w+(, \w+)* +)?\*?run( //.*)?$`)

// TestNoPartHoldsTheRun checks that no struct has a field of the run, which could do everything.
func TestNoPartHoldsTheRun(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if field := aRun.Find(content); field != nil {
			t.Errorf("%s: a part has the run: %s", file, field)
		}
	}
}
