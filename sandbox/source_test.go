// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// writeFiles writes files below dir. Names are separated by slashes.
func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(files[name]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

const mainFile = "controlplane/cmd/trueup-controlplane/main.go"

// checkout creates a directory that looks like a checkout, with a control plane that builds quickly.
func checkout(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	writeFiles(t, dir, map[string]string{
		"go.mod":                     "// the core\nmodule trueup.dev\n\ngo 1.26.0\n",
		"sandbox/doc.go":             "package sandbox\n",
		"examples/website/go.mod":    "module example.com/website\n",
		"controlplane/go.mod":        "module \"trueup.dev/controlplane\"\n\ngo 1.26.0\n",
		mainFile:                     "package main\n\nfunc main() { println(\"built\") }\n",
		"controlplane/doc_test.go":   "package controlplane\n",
		"controlplane/.hidden":       "",
		"controlplane/testdata/x.go": "package x\n",
	})
	return dir
}

func TestTreeAround(t *testing.T) {
	root := checkout(t)
	other := t.TempDir()
	writeFiles(
		t, other,
		map[string]string{"go.mod": "module trueup.dev/other\n", "controlplane/go.mod": "module trueup.dev/controlplane\n"},
	)
	alone := t.TempDir()
	writeFiles(t, alone, map[string]string{"go.mod": "module trueup.dev\n"})
	tree := filepath.Join(root, "controlplane")
	cases := map[string]struct{ dir, want string }{
		"the root":                         {root, tree},
		"a package":                        {filepath.Join(root, "sandbox"), tree},
		"another module inside":            {filepath.Join(root, "examples", "website"), tree},
		"the control plane itself":         {tree, tree},
		"another module":                   {other, ""},
		"the core without a control plane": {alone, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := treeAround(c.dir); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestKeyFollowsTheTree(t *testing.T) {
	cases := map[string]struct {
		file, content string
		same          bool
	}{
		"the program":                    {mainFile, "package main\n\nfunc main() { println(\"changed\") }\n", false},
		"a new file":                     {"controlplane/new.go", "package controlplane\n", false},
		"a requirement":                  {"controlplane/go.mod", "module trueup.dev/controlplane\n\ngo 1.26.1\n", false},
		"nothing":                        {mainFile, "package main\n\nfunc main() { println(\"built\") }\n", true},
		"a test":                         {"controlplane/doc_test.go", "package controlplane // changed\n", true},
		"a hidden file":                  {"controlplane/.hidden", "changed", true},
		"test data":                      {"controlplane/testdata/x.go", "package changed\n", true},
		"the core module does not count": {"sandbox/doc.go", "package sandbox // changed\n", true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			root := checkout(t)
			src := source{tree: filepath.Join(root, "controlplane")}
			before, err := src.key()
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(before, treeKeyPrefix) || !strings.HasSuffix(before, "-"+runtime.GOOS+"-"+runtime.GOARCH) {
				t.Errorf("key %q does not have the prefix of a checkout", before)
			}
			writeFiles(t, root, map[string]string{c.file: c.content})
			after, err := src.key()
			if err != nil {
				t.Fatal(err)
			}
			if same := before == after; same != c.same {
				t.Errorf("same key: got %t, want %t", same, c.same)
			}
		})
	}
}

func TestVersionIn(t *testing.T) {
	cases := map[string]struct {
		info debug.BuildInfo
		want string
	}{
		"a dependency": {debug.BuildInfo{
			Main: debug.Module{Path: "example.com/m", Version: "v9.9.9"},
			Deps: []*debug.Module{{Path: "trueup.dev/other", Version: "v8.0.0"}, {Path: "trueup.dev", Version: "v0.1.0"}},
		}, "v0.1.0"},
		"the program itself": {
			debug.BuildInfo{Main: debug.Module{Path: "trueup.dev", Version: "v0.2.0"}},
			"v0.2.0",
		},
		"built in a checkout": {
			debug.BuildInfo{Main: debug.Module{Path: "trueup.dev", Version: "(devel)"}},
			"",
		},
		"built in a checkout with changes": {
			debug.BuildInfo{Main: debug.Module{Path: "trueup.dev", Version: "v0.1.0+dirty"}},
			"",
		},
		"a test binary records no dependencies": {
			debug.BuildInfo{Main: debug.Module{Path: "example.com/m", Version: "(devel)"}},
			"",
		},
		"replaced by a directory": {
			debug.BuildInfo{
				Deps: []*debug.Module{{Path: "trueup.dev", Version: "v0.1.0", Replace: &debug.Module{Path: "../trueup"}}},
			},
			"",
		},
		"replaced by a directory, as recorded in programs": {
			debug.BuildInfo{
				Deps: []*debug.Module{
					{
						Path:    "trueup.dev",
						Version: "v0.0.0-00010101000000-000000000000",
						Replace: &debug.Module{Path: "../trueup", Version: "(devel)"},
					},
				},
			},
			"",
		},
		"a fork counts as the version it replaces": {
			debug.BuildInfo{
				Deps: []*debug.Module{
					{Path: "trueup.dev", Version: "v0.1.0", Replace: &debug.Module{Path: "example.com/fork", Version: "v0.1.1"}},
				},
			},
			"v0.1.0",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := versionIn(&c.info); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestQuery(t *testing.T) {
	for version, want := range map[string]string{
		"v0.1.0":                                  "v0.1.0",
		"v1.0.0-rc.1":                             "v1.0.0-rc.1",
		"v0.0.0-20260102030405-0123456789ab":      "0123456789ab",
		"v0.1.1-0.20260102030405-0123456789ab":    "0123456789ab",
		"v1.0.0-rc.0.20260102030405-0123456789ab": "0123456789ab",
	} {
		if got := (source{version: version}).query(); got != want {
			t.Errorf("query of %s is %s, want %s", version, got, want)
		}
	}
}

func TestLocateSource(t *testing.T) {
	root := checkout(t)
	user := func(goMod string) string {
		dir := t.TempDir()
		writeFiles(t, dir, map[string]string{"go.mod": "module example.com/user\n\ngo 1.26.0\n" + goMod})
		return dir
	}
	useModuleProxy(t, "v0.1.0", root)
	cases := map[string]struct {
		dir     string
		want    source
		wantErr string
	}{
		"inside a checkout": {
			filepath.Join(root, "sandbox"),
			source{tree: filepath.Join(root, "controlplane")},
			"",
		},
		"a module that requires us": {user("require trueup.dev v0.1.0\n"), source{version: "v0.1.0"}, ""},
		"a module that replaces us": {
			user("require trueup.dev v0.1.0\nreplace trueup.dev => " + root + "\n"),
			source{tree: filepath.Join(root, "controlplane")},
			"",
		},
		"a module that has no relation": {user(""), source{}, "its version cannot be determined"},
		"no module":                     {t.TempDir(), source{}, "its version cannot be determined"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Chdir(c.dir)
			got, err := locateSource(t.Context())
			if c.wantErr != "" {
				for _, want := range []string{c.wantErr, BinaryVariable, KubeconfigVariable, c.dir} {
					if err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("got error %v, want %q in it", err, want)
					}
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(source{})); diff != "" {
				t.Errorf("source (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSourceOfFolderWithoutControlPlane(t *testing.T) {
	dir := t.TempDir()
	_, err := sourceOf(
		[]byte(`{"Path": "trueup.dev", "Version": "v0.1.0", "Replace": {"Path": "../x", "Dir": "` + dir + `"}}`),
	)
	if err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("got error %v, want one that contains %s", err, dir)
	}
}
