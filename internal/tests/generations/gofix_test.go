// SPDX-License-Identifier: Apache-2.0

package generations

import (
	"flag"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the result of go fix for testdata/gofix/before to testdata/gofix/after")

const (
	noGenericMethods = "go fix does not support generic methods"
	webhookFactory   = "the replacement takes a context and returns an error"
)

// notFixed maps the deprecated names that `go fix` does not replace to the reason. The migration guides describe the
// replacements.
var notFixed = map[string]string{
	"HaltSubReconcilers": "a variable cannot be inlined",
	".Manage(":           "the replacement takes a context, which only the user can choose",
	".Setup(":            "the replacement takes a manager and a builder",
	".Build(":            "the replacement returns an error instead of panicking",
	"tracker.Key":        "the replacement has other fields",
	"tracker.NewKey":     "the replacement has other fields",

	"subReconcilerTestCase.Test(":  noGenericMethods,
	"subReconcilerTests.Test(":     noGenericMethods,
	"subReconcilerTestSuite.Test(": noGenericMethods,

	"AdmissionWebhookFactory":        webhookFactory,
	"admissionWebhookTestCase.Run(":  webhookFactory,
	"admissionWebhookTests.Run(":     webhookFactory,
	"admissionWebhookTestSuite.Run(": webhookFactory,
}

// `go fix ./...` replaces the old names in a program by the new ones, without further tools.
func TestGoFix(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles all imports of the program unless they are in the build cache")
	}
	t.Parallel()
	repository, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	files := []string{"site.go", "site_test.go"}
	dir := moduleWith(t, repository, "testdata/gofix/before", files)
	run(t, dir, "go", "fix", "./...")
	before, fixed := "", ""
	for _, file := range files {
		got, accepted := read(t, filepath.Join(dir, file)), filepath.Join("testdata/gofix/after", file)
		if *update {
			if err := os.WriteFile(accepted, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(read(t, accepted), got); diff != "" {
			t.Errorf("go fix changed %s differently; use -update to accept (-want +got):\n%s", file, diff)
		}
		before += read(t, filepath.Join("testdata/gofix/before", file))
		fixed += got
	}
	run(t, dir, "go", "vet", "./...")

	for _, name := range deprecatedNames(t, repository) {
		if !strings.Contains(before, name) {
			t.Errorf("the program does not use %s", name)
		}
		if _, known := notFixed[name]; known != strings.Contains(fixed, name) {
			t.Errorf("%s is left after go fix: %t, want %t", name, !known, known)
		}
	}
}

// moduleWith returns the directory of a module that has the files and uses this repository, with the same versions of
// other modules.
func moduleWith(t *testing.T, repository, from string, files []string) string {
	t.Helper()
	dir := t.TempDir()
	goMod := read(t, filepath.Join(repository, "go.mod"))
	goMod = strings.Replace(goMod, "module trueup.dev\n", "module example.com/site\n", 1)
	goMod += "\nrequire trueup.dev v0.0.0\n\nreplace trueup.dev => " + repository + "\n"
	contents := map[string]string{"go.mod": goMod, "go.sum": read(t, filepath.Join(repository, "go.sum"))}
	for _, file := range files {
		contents[file] = read(t, filepath.Join(from, file))
	}
	for name, content := range contents {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

var methodOf = regexp.MustCompile(`^func \(\w+ \*?(\w)(\w+)(?:\[\w+\])?\) (\w+\()`)

// deprecatedNames returns the names in files deprecated.go as a program spells them, and the deprecated methods. Names
// of package testing repeat, and belong to variables named after their types.
func deprecatedNames(t *testing.T, repository string) []string {
	t.Helper()
	names := []string{".Setup(", ".Build("}
	for _, pkg := range []string{"apis", "reconcilers", "testing", "time", "tracker"} {
		for line := range strings.Lines(read(t, filepath.Join(repository, pkg, "deprecated.go"))) {
			words := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" ([", r) })
			method := methodOf.FindStringSubmatch(line)
			switch {
			case len(words) < 2, method != nil && !token.IsExported(method[3]):
			case method != nil && pkg == "testing":
				names = append(names, strings.ToLower(method[1])+method[2]+"."+method[3])
			case method != nil:
				names = append(names, "."+method[3])
			case words[0] == "func", words[0] == "type", words[0] == "var":
				name := words[1]
				if pkg == "tracker" {
					name = "tracker." + name
				}
				names = append(names, name)
			}
		}
	}
	if len(names) < 25 {
		t.Fatalf("got only these deprecated names: %q", names)
	}
	return names
}

func run(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	// The module cache has all modules: the test binary was built from them.
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
