// SPDX-License-Identifier: Apache-2.0

package testing_test

import (
	"encoding/json"
	"fmt"
	"go/format"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rtesting "trueup.dev/testing"
)

// What is printed compiles, and is equal to what it was printed from: one file with all of it is compiled into this
// package, as if it were a file of tests in its folder, and run.
func TestLiteralsAreTheValues(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the tests of the package once more")
	}
	imports := map[string]string{"rtesting": "trueup.dev/testing", "testing": "testing"}
	var entries strings.Builder
	values := rtesting.LiteralValues()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		expr, imported := rtesting.LiteralAndImports(values[name])
		for alias, path := range imported {
			if other, ok := imports[alias]; ok && other != path {
				t.Fatalf("%s stands for %s and %s", alias, other, path)
			}
			imports[alias] = path
		}
		// Tests indent all lines of what they print, and people paste it as it is printed.
		fmt.Fprintf(&entries, "%q: %s,\n", name, strings.ReplaceAll(expr, "\n", "\n        "))
	}

	var file strings.Builder
	file.WriteString("package testing_test\n\nimport (\n")
	for _, alias := range slices.Sorted(maps.Keys(imports)) {
		fmt.Fprintf(&file, "%s %q\n", alias, imports[alias])
	}
	file.WriteString(
		")\n\nfunc TestPasted(t *testing.T) {\nrtesting.ComparePasted(t, map[string]any{\n" + entries.String() + "})\n}\n",
	)
	source, err := format.Source([]byte(file.String()))
	if err != nil {
		t.Fatalf("%v\n%s", err, file.String())
	}

	dir, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	pasted, overlay := filepath.Join(t.TempDir(), "pasted.go"), filepath.Join(t.TempDir(), "overlay.json")
	replaced, err := json.Marshal(map[string]any{
		"Replace": map[string]string{filepath.Join(dir, "pasted_test.go"): pasted},
	})
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string][]byte{pasted: source, overlay: replaced} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.CommandContext(
		t.Context(), "go", "test", "-vet=off", "-overlay="+overlay, "-run=^TestPasted$", "-v", ".",
	).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestPasted") {
		t.Errorf("%v\n%s\n%s", err, out, source)
	}
}

type (
	ExternalValue struct{ Name string }
	externalValue struct{ Name string }
)

// Types of a package of tests have no other name, exported or not.
func TestLiteralOfTestPackage(t *testing.T) {
	got, imports := rtesting.LiteralAndImports([]any{ExternalValue{Name: "a"}, &externalValue{Name: "b"}})
	if want := `[]any{ExternalValue{Name: "a"}, &externalValue{Name: "b"}}`; got != want || len(imports) > 0 {
		t.Errorf("got %s with imports %v, want %s", got, imports, want)
	}
}
