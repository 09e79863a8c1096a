// SPDX-License-Identifier: Apache-2.0

package generations

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"trueup.dev/internal/testkit/usermodule"
)

// The programs below testdata/moved are modules as authors wrote them for older generations. The tests here move them
// as the migration guides describe it, without `trueup migrate`, and run the programs' own tests. The tests of
// cmd/trueup/internal/migrate move the same programs with it.

const (
	movePaths = `grep -rlE '"(github.com/vmware-labs/reconciler-runtime|reconciler.io/runtime)' --include='*.go' . |
  xargs sed -i -E 's#"(github.com/vmware-labs/reconciler-runtime|reconciler.io/runtime)#"trueup.dev#'
go get trueup.dev && go mod tidy`
	addParameters = `sed -i -E 's/reconcilers\.(ResourceReconciler|SyncReconciler|SubReconciler|Sequence|WithConfig|` +
		`WithFinalizer)\b([^[])/reconcilers.\1[*v1.Function]\2/g' function_*.go`
	renameHalt = `sed -i 's/reconcilers\.HaltSubReconcilers/reconcilers.ErrHaltSubReconcilers/g' halt.go`
)

const oldGo = "go 1.20\n"

// Commands do the paths and most type parameters; the files below after are the result by hand.
func TestMovedProgram_V11(t *testing.T) {
	m := oldModule(t, "example.com/functions", "testdata/moved/v0.6-v0.11/before")
	m.Run(t, "sh", "-ec", movePaths)

	before := m.Read(t, "function_reconciler.go")
	requireGoFails(t, m, "go fix of what does not compile", "undefined: validation.FieldErrors", "fix", "./...")
	equal(t, "after go fix of what does not compile", before, m.Read(t, "function_reconciler.go"))
	m.Write(t, "api/v1/function.go", read(t, "testdata/moved/v0.6-v0.11/after/api/v1/function.go"))
	requireGoFails(t, m, "without type parameters", "cannot use generic type", "vet", ".")

	m.Run(t, "sh", "-ec", addParameters)
	left := regexp.MustCompile(
		`reconcilers\.(ResourceReconciler|SyncReconciler|SubReconciler|Sequence|WithConfig|WithFinalizer)\b[^[]`,
	)
	for _, file := range []string{"function_reconciler.go", "function_aggregate.go", "function_reconciler_test.go"} {
		if found := left.FindString(m.Read(t, file)); found != "" {
			t.Errorf("%s: %s is left", file, found)
		}
	}

	writeFiles(t, m, "testdata/moved/v0.6-v0.11/after")
	m.Run(t, "go", "mod", "tidy")
	m.Run(t, "go", "fix", "-inline", "./...")
	if got := m.Read(t, "function_aggregate.go"); !strings.Contains(
		got, "&reconcilers.UpdatingObjectManager[*corev1.ConfigMap]{",
	) {
		t.Errorf("go fix has left ResourceManager:\n%s", got)
	}
	m.Run(t, "go", "test", "./...")
}

// Nothing is left to do by hand but what go vet finds and what go fix says that it cannot do.
func TestMovedProgram_V19(t *testing.T) {
	m := oldModule(t, "example.com/site", "testdata/moved/v0.12-v0.22/before")
	m.Run(t, "sh", "-ec", movePaths)
	if got := m.Read(t, "go.mod"); !strings.Contains(got, "\ngo 1.26") {
		t.Errorf("the Go version has not risen:\n%s", got)
	}

	nested := m.Read(t, "nested/nested.go")
	requireGoFails(t, m, "go fix of nested calls", "applied ", "fix", "./nested")
	equal(t, "nested calls after go fix", nested, m.Read(t, "nested/nested.go"))
	m.Write(t, "nested/nested.go", strings.ReplaceAll(nested,
		"return reconcilers.StashParentType(ctx, reconcilers.RetrieveParentType(ctx))",
		"loaded := reconcilers.RetrieveParentType(ctx)\n\treturn reconcilers.StashParentType(ctx, loaded)"))

	const oldLoop, newLoop = "for i := 0; i < times; i++ {", "for range times {"
	m.Run(t, "go", "fix", "-inline", "./...")
	requireText(t, m, "site.go", oldLoop, "&reconcilers.UpdatingObjectManager[*corev1.Secret]{")
	requireText(t, m, "nested/nested.go", "reconcilers.StashOriginalResourceType(ctx, loaded)")
	requireGoFails(
		t, m, "an import that go fix has added", `"sigs.k8s.io/controller-runtime/pkg/client" imported and not used`, "vet",
		"./nested",
	)
	m.Write(
		t, "nested/nested.go",
		strings.Replace(m.Read(t, "nested/nested.go"), "\t\"sigs.k8s.io/controller-runtime/pkg/client\"\n", "", 1),
	)
	m.Run(t, "go", "fix", "./...")
	requireText(t, m, "site.go", newLoop)

	m.Run(t, "sh", "-ec", renameHalt)
	requireText(t, m, "halt.go", "return reconcilers.ErrHaltSubReconcilers")
	requireGoFails(t, m, "a text as a format", "non-constant format string in call to fmt.Fprintf", "test", ".")
	m.Write(t, "site.go", strings.Replace(m.Read(t, "site.go"), "fmt.Fprintf(w, text)", `fmt.Fprintf(w, "%s", text)`, 1))
	requireGoFails(
		t, m, "a halt without an expected result", "ExpectedResult: reconcilers.Result{Requeue: true}", "test", ".",
	)
	m.Write(t, "site_test.go", strings.Replace(m.Read(t, "site_test.go"), "GivenObjects: []client.Object{paused},",
		"GivenObjects: []client.Object{paused},\nExpectedResult: reconcilers.Result{Requeue: true},", 1))
	m.Run(t, "go", "test", "./...")
}

// Only the import path changes.
func TestMovedProgram_Runtime(t *testing.T) {
	m := oldModule(t, "example.com/site", "testdata/moved/runtime/before")
	m.Run(t, "sh", "-ec", movePaths)
	m.Run(t, "go", "test", "./...")
}

// oldModule returns a module with the Go files below a folder, and the Go version of their time. Modules of this
// repository come from the checkout.
func oldModule(t *testing.T, name, folder string) *usermodule.Module {
	t.Helper()
	if testing.Short() {
		t.Skip("compiles all that the program imports, unless the build cache has it")
	}
	t.Parallel()
	m := usermodule.New(t, "../../..")
	m.Env = append(m.Env, "GOFLAGS=-ldflags=-w") // debug information takes half of the time of a link
	m.Write(t, "go.mod", "module "+name+"\n\n"+oldGo)
	m.UseCheckout(t)
	writeFiles(t, m, folder)
	return m
}

func writeFiles(t *testing.T, m *usermodule.Module, folder string) {
	t.Helper()
	for _, file := range goFilesBelow(t, folder) {
		name, err := filepath.Rel(folder, file)
		if err != nil {
			t.Fatal(err)
		}
		m.Write(t, name, read(t, file))
	}
}

func requireGoFails(t *testing.T, m *usermodule.Module, what, text string, args ...string) {
	t.Helper()
	out, err := m.Command(t, "go", args...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), text) {
		t.Errorf("%s: %v, want a failure with %q:\n%s", what, err, text, out)
	}
}

func requireText(t *testing.T, m *usermodule.Module, file string, texts ...string) {
	t.Helper()
	got := m.Read(t, file)
	for _, text := range texts {
		if !strings.Contains(got, text) {
			t.Errorf("%s does not contain %q:\n%s", file, text, got)
		}
	}
}
