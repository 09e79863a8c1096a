// SPDX-License-Identifier: Apache-2.0

package generations

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write what go fix makes of testdata/gofix/before to testdata/gofix/after")

// notFixed are the deprecated names that `go fix` leaves alone, and why. The migration guides tell what to write instead.
var notFixed = map[string]string{
	"HaltSubReconcilers": "a variable cannot be inlined",
	".Manage(":           "the replacement takes a context, which only an author can choose",
	".Setup(":            "the replacement takes a manager and a builder",
	".Build(":            "the replacement returns an error instead of panicking",
	"tracker.Key":        "the replacement has other fields",
	"tracker.NewKey":     "the replacement has other fields",
}

// A program of the old names becomes one of the new names by `go fix ./...`, with nothing else installed.
func TestGoFix(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles all that the program imports, unless the build cache has it")
	}
	repository, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := moduleWith(t, repository, "testdata/gofix/before/site.go")
	run(t, dir, "go", "fix", "./...")
	fixed := read(t, filepath.Join(dir, "site.go"))
	if *update {
		if err := os.WriteFile("testdata/gofix/after/site.go", []byte(fixed), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(read(t, "testdata/gofix/after/site.go"), fixed); diff != "" {
		t.Errorf("go fix writes something else; with -update it is accepted (-want +got):\n%s", diff)
	}
	run(t, dir, "go", "vet", "./...")

	before := read(t, "testdata/gofix/before/site.go")
	for _, name := range deprecatedNames(t, repository) {
		if !strings.Contains(before, name) {
			t.Errorf("the program does not use %s", name)
		}
		if _, known := notFixed[name]; known != strings.Contains(fixed, name) {
			t.Errorf("%s is left after go fix: %t, want %t", name, !known, known)
		}
	}
}

// moduleWith returns the folder of a module that has the file and uses this repository, with the versions of modules that it uses itself.
func moduleWith(t *testing.T, repository, file string) string {
	t.Helper()
	dir := t.TempDir()
	goMod := read(t, filepath.Join(repository, "go.mod"))
	goMod = strings.Replace(goMod, "module trueup.dev\n", "module example.com/site\n", 1)
	goMod += "\nrequire trueup.dev v0.0.0\n\nreplace trueup.dev => " + repository + "\n"
	for name, content := range map[string]string{
		"go.mod":            goMod,
		"go.sum":            read(t, filepath.Join(repository, "go.sum")),
		filepath.Base(file): read(t, file),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// deprecatedNames are the names in files deprecated.go, spelled as a program uses them, and the deprecated methods.
func deprecatedNames(t *testing.T, repository string) []string {
	t.Helper()
	names := []string{".Setup(", ".Build("}
	for _, pkg := range []string{"apis", "reconcilers", "time", "tracker"} {
		for line := range strings.Lines(read(t, filepath.Join(repository, pkg, "deprecated.go"))) {
			words := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" ([", r) })
			switch {
			case len(words) < 2:
			case strings.HasPrefix(line, "func ("):
				_, method, _ := strings.Cut(line, ") ")
				method, _, _ = strings.Cut(method, "(")
				names = append(names, "."+method+"(")
			case words[0] == "func", words[0] == "type", words[0] == "var":
				name := words[1]
				if pkg == "tracker" {
					name = "tracker." + name
				}
				names = append(names, name)
			}
		}
	}
	if len(names) < 15 {
		t.Fatalf("found only these deprecated names: %q", names)
	}
	return names
}

func run(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	// The module cache has all it takes: the test binary was built from the same modules.
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
