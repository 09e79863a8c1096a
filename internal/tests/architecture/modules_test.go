// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// libraryModules are the directories of modules of their own that users import.
var libraryModules = []string{"informer/memcached", "observe/otel"}

// tracing are the modules that observe/otel imports. Users choose the version of the SDK, and the exporter.
var tracing = []string{
	"go.opentelemetry.io/otel",
	"go.opentelemetry.io/otel/trace",
	"k8s.io/apimachinery",
	module,
}

// TestModulesAreListed compares the modules of the repository with those that the Makefile tests, lints and tidies, and
// with those that CONTRIBUTING.md lists.
func TestModulesAreListed(t *testing.T) {
	modules := []string{}
	err := fs.WalkDir(os.DirFS("../../.."), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "testdata"):
			return fs.SkipDir
		case entry.Name() == "go.mod":
			modules = append(modules, path.Dir(name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(modules)

	makefile := read(t, "Makefile")
	inMakefile := []string{}
	for _, variable := range []string{"CODE", "MODULES"} {
		match := regexp.MustCompile(`(?m)^` + variable + ` *:= (?:\$\(CODE\) )?(.*)$`).FindStringSubmatch(makefile)
		if match == nil {
			t.Fatalf("the Makefile does not set %s", variable)
		}
		inMakefile = append(inMakefile, strings.Fields(match[1])...)
	}
	slices.Sort(inMakefile)
	if diff := cmp.Diff(modules, inMakefile); diff != "" {
		t.Errorf("modules in the Makefile (-want +got):\n%s", diff)
	}

	sentence, _, ok := strings.Cut(read(t, "CONTRIBUTING.md"), " are separate modules")
	if !ok {
		t.Fatal("CONTRIBUTING.md does not list the modules")
	}
	sentence = sentence[strings.LastIndex(sentence, "\n\n")+1:]
	listed := []string{"."}
	for _, match := range regexp.MustCompile("`([a-z/]+)/`").FindAllStringSubmatch(sentence, -1) {
		listed = append(listed, match[1])
	}
	slices.Sort(listed)
	if diff := cmp.Diff(modules, listed); diff != "" {
		t.Errorf("modules in CONTRIBUTING.md (-want +got):\n%s", diff)
	}
}

// TestModulesImportNoInternals checks modules that users can combine with another version of the main module.
func TestModulesImportNoInternals(t *testing.T) {
	for _, directory := range libraryModules {
		packages, err := goList("../../../"+directory, ".")
		if err != nil {
			t.Fatal(err)
		}
		for _, imported := range packages[module+"/"+directory].Imports {
			if strings.HasPrefix(imported, module+"/internal/") {
				t.Errorf("%s imports %s, which can change without a new version of the module", directory, imported)
			}
		}
	}
}

// TestTracesNeedNoSDK checks what users of observe/otel inherit besides the main module.
func TestTracesNeedNoSDK(t *testing.T) {
	packages, err := goList("../../../observe/otel", ".")
	if err != nil {
		t.Fatal(err)
	}
	moduleOf := map[string]string{}
	for _, p := range packages {
		if p.Module != nil {
			moduleOf[p.ImportPath] = p.Module.Path
		}
	}
	imported := map[string]bool{}
	for _, p := range packages {
		if p.ImportPath != module+"/observe/otel" {
			continue
		}
		for _, path := range p.Imports {
			if used := moduleOf[path]; used != "" {
				imported[used] = true
			}
		}
	}
	if diff := cmp.Diff(tracing, slices.Sorted(maps.Keys(imported))); diff != "" {
		t.Errorf("modules that observe/otel imports (-want +got):\n%s", diff)
	}
	sdk := regexp.MustCompile(`^go\.opentelemetry\.io/otel/(sdk|exporters)`)
	for path, of := range moduleOf {
		if sdk.MatchString(of) {
			t.Errorf("observe/otel depends on %s", path)
		}
	}
}

// TestModulesShareVersions checks that modules build with the versions of the main module. Then they share its compiled
// packages: with other versions, a first test run takes minutes more.
func TestModulesShareVersions(t *testing.T) {
	ours := requirements(t, "go.mod")
	for _, directory := range append([]string{"controlplane"}, libraryModules...) {
		for path, required := range requirements(t, directory+"/go.mod") {
			if want, ok := ours[path]; ok && required.version != want.version {
				t.Errorf("%s/go.mod requires %s %s, and the main module %s", directory, path, required.version, want.version)
			}
		}
	}
}

type requirement struct {
	version  string
	indirect bool
}

// requirements returns the modules that a go.mod requires.
func requirements(t *testing.T, name string) map[string]requirement {
	t.Helper()
	required := map[string]requirement{}
	for line := range strings.Lines(read(t, name)) {
		fields := strings.Fields(strings.TrimPrefix(line, "require "))
		if len(fields) > 1 && strings.HasPrefix(fields[1], "v") {
			required[fields[0]] = requirement{
				version: fields[1], indirect: strings.HasSuffix(strings.TrimSpace(line), "// indirect"),
			}
		}
	}
	if len(required) == 0 {
		t.Fatalf("%s requires nothing", name)
	}
	return required
}
