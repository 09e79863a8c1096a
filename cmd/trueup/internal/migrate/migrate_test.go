// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The versions that go.mod gets are those that trueup is built on.
func TestVersionsAreThoseOfTrueup(t *testing.T) {
	goMod := readFile(t, "../../../../go.mod")
	if !strings.Contains(goMod, "\ngo "+goVersion+"\n") {
		t.Errorf("go.mod has another Go version than %s", goVersion)
	}
	for module, version := range versions {
		if !strings.Contains(goMod, "\t"+module+" "+version) {
			t.Errorf("go.mod does not require %s %s", module, version)
		}
	}
}

// Each row that is printed exists in its guide.
func TestRowsExist(t *testing.T) {
	for name, at := range rows {
		guide := readFile(t, filepath.Join("../../../../docs/migration", string(at.page)+".md"))
		row := regexp.MustCompile(`(?m)^\| [^|]*` + regexp.QuoteMeta(at.old) + `[^|]*\|`)
		if !row.MatchString(guide) {
			t.Errorf("%s: no row of docs/migration/%s.md has %q in its left column", name, at.page, at.old)
		}
	}
}

const oldGoMod = "module example.com/m\n\ngo 1.20\n\nrequire github.com/vmware-labs/reconciler-runtime v0.11.1\n"

// migrated returns what becomes of a file.
func migrated(t *testing.T, source string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "go.mod"), oldGoMod)
	writeFile(t, filepath.Join(dir, "m.go"), source)
	err := Run(t.Context(), io.Discard, Options{Dir: dir, Force: true})
	return readFile(t, filepath.Join(dir, "m.go")), err
}

func TestTypeParameters(t *testing.T) {
	const head = "package m\n\nimport (\n\t\"context\"\n\n\t\"example.com/api\"\n" +
		"\t\"github.com/vmware-labs/reconciler-runtime/reconcilers\"\n" +
		"\t\"sigs.k8s.io/controller-runtime/pkg/client\"\n)\n\n"
	for name, c := range map[string]struct{ before, want string }{
		"from a method": {
			"type R struct{}\n\nfunc (r *R) sync(ctx context.Context, t *api.Thing) error { return nil }\n" +
				"func (r *R) Steps() reconcilers.SubReconciler { return &reconcilers.SyncReconciler{Sync: r.sync} }",
			"func (r *R) Steps() reconcilers.SubReconciler[*api.Thing] {",
		},
		"from a variable": {
			"var steps reconcilers.Sequence\n" +
				"func f() { steps = append(steps, &reconcilers.SyncReconciler{Sync: g}) }\n" +
				"func g(ctx context.Context, t *api.Thing) error { return nil }",
			"var steps reconcilers.Sequence[*api.Thing]",
		},
		"from where a function is called": {
			"func Empty() reconcilers.SubReconciler { return reconcilers.Sequence{} }\n" +
				"func Root() *reconcilers.ResourceReconciler {\n" +
				"\treturn &reconcilers.ResourceReconciler{Type: &api.Thing{}, Reconciler: Empty()}\n}",
			"func Empty() reconcilers.SubReconciler[*api.Thing] { return reconcilers.Sequence[*api.Thing]{} }",
		},
		"shared by two kinds": {
			"func Any() reconcilers.SubReconciler { return &reconcilers.SyncReconciler{Sync: g} }\n" +
				"func g(ctx context.Context, o client.Object) error { return nil }\n" +
				"var a = &reconcilers.ResourceReconciler{Type: &api.A{}, Reconciler: Any()}\n" +
				"var b = &reconcilers.ResourceReconciler{Type: &api.B{}, Reconciler: reconcilers.Sequence{Any()}}",
			"Reconciler: reconcilers.Sequence[*api.B]{&reconcilers.CastResource[*api.B, client.Object]{Reconciler: Any()}}}",
		},
		"below a cast": {
			"var c = &reconcilers.CastResource{\n\tType: &api.Duck{}, // all fields\n" +
				"\tReconciler: reconcilers.Sequence{},\n}\n" +
				"var a = &reconcilers.ResourceReconciler{Type: &api.A{}, Reconciler: c}",
			"var c = &reconcilers.CastResource[*api.A, *api.Duck]{\n\t// all fields\n" +
				"\tReconciler: reconcilers.Sequence[*api.Duck]{},\n}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := migrated(t, head+c.before+"\n")
			if err != nil || !strings.Contains(got, c.want) {
				t.Errorf("%v; %q is not in:\n%s", err, c.want, got)
			}
		})
	}
}

// What has no rule is reported, and so are types that nothing shows.
func TestLeftByHand(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "go.mod"), oldGoMod)
	writeFile(t, filepath.Join(dir, "m.go"), `package m

import (
	"github.com/vmware-labs/reconciler-runtime/reconcilers"
	rtesting "github.com/vmware-labs/reconciler-runtime/testing"
)

var steps reconcilers.Sequence

var actions = rtesting.CompareActions
`)
	var out bytes.Buffer
	err := Run(t.Context(), &out, Options{Dir: dir, Force: true})
	if !errors.Is(err, ErrLeft) {
		t.Errorf("got the error %v, want %v", err, ErrLeft)
	}
	_, got, _ := strings.Cut(out.String(), "left by hand:\n")
	want := "  m.go:8: the type parameter of reconcilers.Sequence is unknown; docs/migration/v0.6-v0.11.md, " +
		"row ResourceReconciler{Type: &T{}}\n" +
		"  m.go:10: testing.CompareActions does not exist; docs/migration/v0.6-v0.11.md, row CompareActions\n" +
		"\nnext: go get trueup.dev@latest && go mod tidy && go vet ./...\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
}

// A file that git does not have is not overwritten.
func TestUncommittedFilesAreKept(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{
			"-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false",
		}, args...)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", cmd, err, out)
		}
	}
	const source = "package m\n\nimport _ \"github.com/vmware-labs/reconciler-runtime/reconcilers\"\n"
	writeFile(t, filepath.Join(dir, "go.mod"), oldGoMod)
	writeFile(t, filepath.Join(dir, "m.go"), source)
	run := func(o Options) error {
		o.Dir = dir
		return Run(t.Context(), io.Discard, o)
	}
	for _, step := range []struct {
		name    string
		prepare func()
		options Options
		refused bool
	}{
		{"outside of a repository", func() {}, Options{}, true},
		{"untracked", func() { git("init", "-q") }, Options{}, true},
		{"a diff", func() {}, Options{Diff: true}, false},
		{"changed", func() {
			git("add", ".")
			git("commit", "-q", "-m", "m")
			writeFile(t, filepath.Join(dir, "m.go"), source+"\n// more\n")
		}, Options{}, true},
		{"committed", func() { git("commit", "-q", "-a", "-m", "m") }, Options{}, false},
	} {
		step.prepare()
		err := run(step.options)
		if refused := err != nil; refused != step.refused {
			t.Errorf("%s: %v, want an error: %t", step.name, err, step.refused)
		}
		changed := strings.Contains(readFile(t, filepath.Join(dir, "m.go")), trueupModule)
		if want := step.name == "committed"; changed != want {
			t.Errorf("%s: changed: %t, want %t", step.name, changed, want)
		}
	}
}

// A module is read as a whole, but only the files that patterns select are changed.
func TestPatterns(t *testing.T) {
	const source = "package m\n\nimport _ \"github.com/vmware-labs/reconciler-runtime/reconcilers\"\n"
	for pattern, want := range map[string][]string{
		"./...":   {"a/b/m.go", "a/m.go", "go.mod", "m.go"},
		".":       {"go.mod", "m.go"},
		"./a":     {"a/m.go", "go.mod"},
		"./a/...": {"a/b/m.go", "a/m.go", "go.mod"},
	} {
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, "go.mod"), oldGoMod)
		for _, name := range []string{"m.go", "a/m.go", "a/b/m.go", "vendor/m.go", "nested/m.go", "testdata/m.go"} {
			writeFile(t, filepath.Join(dir, name), source)
		}
		writeFile(t, filepath.Join(dir, "nested/go.mod"), "module nested\n")
		before := filesBelow(t, dir)
		if err := Run(t.Context(), io.Discard, Options{Dir: dir, Force: true, Patterns: []string{pattern}}); err != nil {
			t.Fatal(err)
		}
		changed := []string{}
		for name, content := range filesBelow(t, dir) {
			if content != before[name] {
				changed = append(changed, name)
			}
		}
		slices.Sort(changed)
		if diff := cmp.Diff(want, changed); diff != "" {
			t.Errorf("%s: changed files (-want +got):\n%s", pattern, diff)
		}
	}
}

func filesBelow(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := sourcesOf(t, dir)
	maps.Copy(files, map[string]string{"go.mod": readFile(t, filepath.Join(dir, "go.mod"))})
	return files
}

// A diff is one that patch and git apply accept.
func TestDiffApplies(t *testing.T) {
	for _, p := range programs {
		t.Run(p.folder(), func(t *testing.T) {
			t.Parallel()
			dir := oldProgram(t, p)
			var diff bytes.Buffer
			if err := Run(t.Context(), &diff, Options{Dir: dir, Diff: true}); err != nil && !errors.Is(err, ErrLeft) {
				t.Fatal(err)
			}
			patch, _, _ := strings.Cut(diff.String(), "\nfrom "+string(p.generation))
			patched := oldProgram(t, p)
			cmd := exec.CommandContext(t.Context(), "git", "apply", "-")
			cmd.Dir, cmd.Stdin = patched, strings.NewReader(patch+"\n")
			cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(patched))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %v\n%s", cmd, err, out)
			}
			if err := Run(t.Context(), io.Discard, Options{Dir: dir, Force: true}); err != nil && !errors.Is(err, ErrLeft) {
				t.Fatal(err)
			}
			if diff := cmp.Diff(filesBelow(t, dir), filesBelow(t, patched)); diff != "" {
				t.Errorf("files after the patch (-want +got):\n%s", diff)
			}
		})
	}
}

// A second run changes nothing: what was left in the first one is still reported.
func TestSecondRun(t *testing.T) {
	for _, p := range programs {
		dir := oldProgram(t, p)
		_ = Run(t.Context(), io.Discard, Options{Dir: dir, Force: true}) // something may be left
		first := filesBelow(t, dir)
		_ = Run(t.Context(), io.Discard, Options{Dir: dir, Force: true, From: p.generation})
		if diff := cmp.Diff(first, filesBelow(t, dir)); diff != "" {
			t.Errorf("%s: the second run changed (-first +second):\n%s", p.folder(), diff)
		}
	}
}
