// SPDX-License-Identifier: Apache-2.0

package literal_test

import (
	"encoding/json"
	"fmt"
	"go/format"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
	"trueup.dev/testing/internal/literal"
)

// Literals compile and are equal to the values that they were printed from. The test compiles one file with all
// literals into this package, as if it were a test file in its directory, and runs it.
func TestLiteralsAreTheValues(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the tests of the package once more")
	}
	imports := map[string]string{"testing": "testing"}
	var entries strings.Builder
	originals := values()
	for _, name := range slices.Sorted(maps.Keys(originals)) {
		expr, imported := literal.WithImports(originals[name])
		for alias, path := range imported {
			if other, ok := imports[alias]; ok && other != path {
				t.Fatalf("%s stands for %s and %s", alias, other, path)
			}
			imports[alias] = path
		}
		// Tests indent all lines that they print, and people paste the indented lines.
		fmt.Fprintf(&entries, "%q: %s,\n", name, strings.ReplaceAll(expr, "\n", "\n        "))
	}

	var file strings.Builder
	file.WriteString("package literal_test\n\nimport (\n")
	for _, alias := range slices.Sorted(maps.Keys(imports)) {
		fmt.Fprintf(&file, "%s %q\n", alias, imports[alias])
	}
	file.WriteString(
		")\n\nfunc TestPasted(t *testing.T) {\ncomparePasted(t, map[string]any{\n" + entries.String() + "})\n}\n",
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

// comparePasted compares values with those that they were printed from.
//
//nolint:unused // the test that is printed calls it
func comparePasted(t *testing.T, pasted map[string]any) {
	t.Helper()
	original := values()
	for name, value := range original {
		got, ok := pasted[name]
		if !ok {
			t.Errorf("%s is missing", name)
			continue
		}
		if reflect.TypeOf(got) != reflect.TypeOf(value) {
			t.Errorf("%s is a %T, want %T", name, got, value)
		}
		if diff := cmp.Diff(
			value, got, reconcilers.IgnoreAllUnexported, rtesting.NormalizeLabelSelector, rtesting.NormalizeFieldSelector,
			cmpopts.EquateNaNs(),
		); diff != "" {
			t.Errorf("%s (-original +pasted):\n%s", name, diff)
		}
	}
}

type (
	ExternalValue struct{ Name string }
	externalValue struct{ Name string }
)

// The types of an external test package have no qualified name, exported or not.
func TestLiteralOfTestPackage(t *testing.T) {
	got, imports := literal.WithImports([]any{ExternalValue{Name: "a"}, &externalValue{Name: "b"}})
	if want := `[]any{ExternalValue{Name: "a"}, &externalValue{Name: "b"}}`; got != want || len(imports) > 0 {
		t.Errorf("got %s with imports %v, want %s", got, imports, want)
	}
}
