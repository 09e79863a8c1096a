// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const module = "trueup.dev"

// layers lists the packages of the module from the bottom up. A package may import packages of lower layers and
// packages in its own directory.
var layers = [][]string{
	{
		"apis", "app", "duck", "graph", "logging", "observe", "readiness", "resource", "sandbox", "shards", "stash", "time",
		"tracker", "validation", "internal",
	},
	{"clusters", "console", "external", "informer", "plan", "reconcilers"},
	{"operator"},
	{"simple", "testing"},
	{"converge"},
	{"examples"},
	{"cmd", "lab", "docs"},
}

// sameLayer lists the intended imports within a layer.
var sameLayer = map[string][]string{
	"apis":     {"time"},
	"app":      {"resource"},
	"external": {"reconcilers"}, // a subreconciler
	"graph":    {"observe"},     // a recorder of permissions listens to calls
	// The test fixture has a status, tests use an API, the stand-in for a sharder has the labels, and set-up validates.
	"internal": {"apis", "sandbox", "shards", "validation"},
}

// libraries are the modules that users inherit by importing packages of this module: controller-runtime and a few small
// ones.
var libraries = []string{
	"github.com/evanphx/json-patch/v5",
	"github.com/fatih/color",
	"github.com/go-logr/logr",
	"github.com/google/go-cmp",
	prometheusClient,
	"gomodules.xyz/jsonpatch/v2",
	"k8s.io/api",
	"k8s.io/apiextensions-apiserver",
	"k8s.io/apimachinery",
	"k8s.io/client-go",
	"k8s.io/kube-openapi", // the routes of a manifest; client-go depends on it
	"sigs.k8s.io/controller-runtime",
	"sigs.k8s.io/yaml",
}

// memoryBackend is the package that adds the API in memory to package sandbox. Other programs with package sandbox do
// not contain it.
const memoryBackend = module + "/sandbox/memory"

// leaves are the packages that all others may import: they import only the standard library.
var leaves = []string{module + "/internal/filelock", module + "/internal/serving/apipath"}

// proofs are the modules that users additionally inherit by importing converge, plan or the API in memory of the
// sandbox: the parts of a Kubernetes API server that internal/memapi uses. controller-runtime requires all of these
// modules.
var proofs = []string{
	"gopkg.in/evanphx/json-patch.v4",
	"k8s.io/apiserver",
	"sigs.k8s.io/json",
	"sigs.k8s.io/structured-merge-diff/v6",
}

// celRules is the package of rules in the Common Expression Language. Only programs that import it contain cel-go,
// which controller-runtime requires through k8s.io/apiserver.
const (
	celRules  = module + "/readiness/cel"
	celModule = "github.com/google/cel-go"
)

// flagParser is the module that package plan parses flags with. client-go requires it, too.
const flagParser = "github.com/spf13/pflag"

// prometheusClient is the module that makes metrics. Besides observe/metrics, only appCollectors imports it, which
// registers what an app has made.
const (
	prometheusClient = "github.com/prometheus/client_golang"
	appCollectors    = "operator/runner.go"
)

// tools are the modules that only the command line tool, examples and tests use.
var tools = []string{
	flagParser,
	"go.uber.org/goleak",
	"golang.org/x/term",
	"k8s.io/klog/v2",
}

type goPackage struct {
	ImportPath string
	Imports    []string
	Module     *struct {
		Path string
		Main bool
	}
}

// allPackages returns all packages of the module, with those that they depend on, by their import paths.
func allPackages(t *testing.T) map[string]goPackage {
	t.Helper()
	listed, err := listPackages()
	if err != nil {
		t.Fatal(err)
	}
	return listed
}

// listPackages runs go list once for all tests.
var listPackages = sync.OnceValues(func() (map[string]goPackage, error) { return goList("../../..", "./...") })

// goList lists packages of the module in a directory and those that they depend on.
func goList(directory, pattern string) (map[string]goPackage, error) {
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Imports,Module", pattern)
	cmd.Dir = directory
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%v: %w\n%s", cmd, err, stderr.String())
	}
	listed := map[string]goPackage{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		p := goPackage{}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return listed, nil
		} else if err != nil {
			return nil, err
		}
		listed[p.ImportPath] = p
	}
}

// inModule reports whether the package belongs to the module that was listed.
func (p goPackage) inModule() bool { return p.Module != nil && p.Module.Main }

// dependencies returns the packages and all that they depend on, except the standard library.
func dependencies(t *testing.T, paths ...string) map[string]goPackage {
	t.Helper()
	listed, found := allPackages(t), map[string]goPackage{}
	for pending := slices.Clone(paths); len(pending) > 0; {
		path := pending[0]
		pending = pending[1:]
		p, ok := listed[path]
		if _, seen := found[path]; seen || ok && p.Module == nil {
			continue
		}
		if !ok && path != "C" {
			t.Fatalf("go list does not list %s", path)
		}
		found[path] = p
		pending = append(pending, p.Imports...)
	}
	return found
}

// folder is the first element of a package's path within the module. It is "" for the root package and packages of
// other modules.
func folder(importPath string) string {
	path, ok := strings.CutPrefix(importPath, module+"/")
	if !ok {
		return ""
	}
	first, _, _ := strings.Cut(path, "/")
	return first
}

func layerOf(folder string) int {
	return slices.IndexFunc(layers, func(layer []string) bool { return slices.Contains(layer, folder) })
}

func TestImportsPointDownwards(t *testing.T) {
	checked := 0
	for _, p := range allPackages(t) {
		from := folder(p.ImportPath)
		if from == "" || !p.inModule() {
			continue
		}
		checked++
		if layerOf(from) < 0 {
			t.Errorf("%s is not in a layer: add it to layers", p.ImportPath)
		}
		for _, imported := range p.Imports {
			to := folder(imported)
			if slices.Contains(leaves, p.ImportPath) && strings.Contains(imported, ".") {
				t.Errorf("%s imports %s, which is not in the standard library", p.ImportPath, imported)
			}
			switch {
			case to == "" || to == from || slices.Contains(leaves, imported) || slices.Contains(sameLayer[from], to):
			case to == "controlplane":
				t.Errorf("%s imports %s, which depends on all of Kubernetes: use sandbox instead", p.ImportPath, imported)
			case to == "internal" && layerOf(from) == 0 && (from != "sandbox" || p.ImportPath == memoryBackend):
			case layerOf(to) >= layerOf(from):
				t.Errorf("%s imports %s, which is not in a lower layer", p.ImportPath, imported)
			}
			// The API in memory is compiled only into programs that import sandbox/memory.
			if from == "sandbox" && to != "" && to != from && p.ImportPath != memoryBackend &&
				!slices.Contains(leaves, imported) {
				t.Errorf("%s imports %s: sandbox must not depend on other packages of the module", p.ImportPath, imported)
			}
		}
	}
	if checked < 10 {
		t.Errorf("checked only %d packages", checked)
	}
}

func TestDirectDependenciesAreListed(t *testing.T) {
	direct := []string{}
	for path, required := range requirements(t, "go.mod") {
		if !required.indirect {
			direct = append(direct, path)
		}
	}
	slices.Sort(direct)
	want := slices.Concat(libraries, proofs, tools, []string{celModule})
	slices.Sort(want)
	if diff := cmp.Diff(want, direct); diff != "" {
		t.Errorf("direct dependencies in go.mod (-want +got):\n%s", diff)
	}
}

// libraryPackages returns the packages that users import.
func libraryPackages(t *testing.T) []string {
	t.Helper()
	paths := []string{}
	for _, p := range allPackages(t) {
		if layer := layerOf(folder(p.ImportPath)); p.inModule() && layer >= 0 && layer < layerOf("examples") &&
			folder(p.ImportPath) != "internal" {
			paths = append(paths, p.ImportPath)
		}
	}
	slices.Sort(paths)
	return paths
}

func TestLibrariesUseOnlyListedModules(t *testing.T) {
	all, checked := dependencies(t, libraryPackages(t)...), 0
	for _, p := range all {
		if !p.inModule() {
			continue
		}
		for _, imported := range p.Imports {
			if all[imported].Module == nil || all[imported].inModule() {
				continue
			}
			used := all[imported].Module.Path
			checked++
			// sandbox uses golang.org/x/term to detect whether progress goes to a terminal.
			allowed := slices.Contains(libraries, used) || used == "golang.org/x/term" && folder(p.ImportPath) == "sandbox" ||
				slices.Contains(proofs, used) && strings.HasPrefix(p.ImportPath, module+"/internal/memapi") ||
				used == celModule && p.ImportPath == celRules ||
				used == flagParser && folder(p.ImportPath) == "plan"
			if !allowed {
				t.Errorf(
					"%s imports %s of module %s, which packages that users import must not depend on", p.ImportPath, imported, used,
				)
			}
		}
	}
	if checked == 0 {
		t.Error("no imports were checked")
	}
}

// TestOnlyOnePackageMakesMetrics checks that reconcilers, informers and handlers report events, and observe/metrics
// makes metrics of them: who removes that listener removes all metrics.
func TestOnlyOnePackageMakesMetrics(t *testing.T) {
	found := 0
	for _, f := range sourceFiles(t) {
		if !f.isGo() || strings.HasSuffix(f.path, "_test.go") ||
			!strings.Contains(f.content, `"`+prometheusClient) {
			continue
		}
		switch {
		case strings.HasPrefix(f.path, "observe/metrics/"):
			found++
		case f.path != appCollectors:
			t.Errorf("%s imports %s: report an event of package observe instead", f.path, prometheusClient)
		}
	}
	if found == 0 {
		t.Errorf("no file of observe/metrics imports %s", prometheusClient)
	}
}

// Users of the library and of converge can run the tool without further entries in go.sum. The tool contains the API in
// memory.
func TestToolNeedsNoFurtherModules(t *testing.T) {
	library := modulesOf(t, module+"/reconcilers", module+"/converge")
	for path := range modulesOf(t, module+"/cmd/trueup") {
		if !library[path] {
			t.Errorf("cmd/trueup needs module %s, which reconcilers and converge do not", path)
		}
	}
}

var update = flag.Bool("update", false, "write the golden file instead of comparing with it")

// TestInheritedModules compares the modules that a user inherits by importing all packages, and the modules that
// converge, plan and the API in memory add, and rules in CEL to programs, with golden files.
func TestInheritedModules(t *testing.T) {
	programs, tests := []string{}, []string{}
	for _, path := range libraryPackages(t) {
		switch {
		case folder(path) == "converge" || folder(path) == "plan" || path == memoryBackend:
			tests = append(tests, path)
		case path != celRules:
			programs = append(programs, path)
		}
	}
	inherited := modulesOf(t, programs...)
	compareModules(t, "testdata/inherited_modules.txt", inherited)
	for golden, packages := range map[string][]string{
		"testdata/inherited_modules_converge.txt": tests, "testdata/inherited_modules_cel.txt": {celRules},
	} {
		added := modulesOf(t, packages...)
		maps.DeleteFunc(added, func(path string, _ bool) bool { return inherited[path] })
		compareModules(t, golden, added)
	}
}

func modulesOf(t *testing.T, paths ...string) map[string]bool {
	t.Helper()
	modules := map[string]bool{}
	for _, p := range dependencies(t, paths...) {
		if p.Module != nil && !p.Module.Main {
			modules[p.Module.Path] = true
		}
	}
	return modules
}

func compareModules(t *testing.T, golden string, modules map[string]bool) {
	t.Helper()
	got := strings.Join(slices.Sorted(maps.Keys(modules)), "\n") + "\n"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("modules of %s (-want +got), accept them with `go test ./internal/tests/architecture -update`:\n%s", golden, diff)
	}
}

func TestControlPlaneStandsAlone(t *testing.T) {
	out, err := os.ReadFile("../../../controlplane/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, module) && !strings.HasPrefix(line, "module ") {
			t.Errorf("controlplane/go.mod mentions the main module: %s", line)
		}
		if strings.HasPrefix(strings.TrimSpace(line), "replace ") {
			t.Errorf("controlplane/go.mod must not have a replace directive, or `go install` of it fails: %s", line)
		}
	}
}
