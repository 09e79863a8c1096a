// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// upstream is what kube-controller-manager declares about a controller.
type upstream struct {
	Alias    string
	Disabled bool
	Gates    []string
}

// TestCatalogMatchesKubeControllerManager compares with the source of the command, which must not be linked. A new
// version of Kubernetes with a new controller or another feature gate fails here.
func TestCatalogMatchesKubeControllerManager(t *testing.T) {
	want := upstreamControllers(t)
	for name := range leftOut {
		if _, ok := want[name]; ok {
			delete(want, name)
		} else if !strings.Contains(leftOut[name], "cloud") {
			t.Errorf("%s is left out, but is unknown to kube-controller-manager", name)
		}
	}
	got := map[string]upstream{}
	for _, d := range catalog() {
		if slices.ContainsFunc(own, func(o descriptor) bool { return o.name == d.name }) {
			continue
		}
		u := upstream{Alias: d.alias, Disabled: d.optional}
		for _, gate := range d.gates {
			u.Gates = append(u.Gates, string(gate))
		}
		got[d.name] = u
	}
	// These run by default in a cluster with machines, see nodes.
	for _, name := range []string{
		"device-taint-eviction-controller", "node-lifecycle-controller", "taint-eviction-controller",
	} {
		u := want[name]
		u.Disabled = true
		want[name] = u
	}
	// The gate is locked, and its constant will be removed.
	u := want["taint-eviction-controller"]
	u.Gates = nil
	want["taint-eviction-controller"] = u
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("controllers (-kube-controller-manager +catalog):\n%s", diff)
	}
}

func upstreamControllers(t *testing.T) map[string]upstream {
	t.Helper()
	const command = "k8s.io/kubernetes/cmd/kube-controller-manager"
	constants := map[string]string{}
	for _, file := range parse(t, command+"/names") {
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
				constants[spec.Names[0].Name] = stringOf(t, spec.Values[0])
			}
			return true
		})
	}
	controllers := map[string]upstream{}
	for _, file := range parse(t, command+"/app") {
		ast.Inspect(file, func(n ast.Node) bool {
			literal, ok := n.(*ast.CompositeLit)
			if !ok {
				return true
			}
			if kind, ok := literal.Type.(*ast.Ident); !ok || kind.Name != "ControllerDescriptor" {
				return true
			}
			name, u := "", upstream{}
			for _, element := range literal.Elts {
				field := element.(*ast.KeyValueExpr)
				switch field.Key.(*ast.Ident).Name {
				case "name":
					name = constants[field.Value.(*ast.SelectorExpr).Sel.Name]
				case "aliases":
					u.Alias = stringOf(t, field.Value.(*ast.CompositeLit).Elts[0])
				case "isDisabledByDefault":
					u.Disabled = true
				case "requiredFeatureGates":
					for _, gate := range field.Value.(*ast.CompositeLit).Elts {
						u.Gates = append(u.Gates, gate.(*ast.SelectorExpr).Sel.Name)
					}
				}
			}
			controllers[name] = u
			return false
		})
	}
	if len(controllers) < 40 || controllers[""].Alias != "" {
		t.Fatalf("found %d controllers in the source of kube-controller-manager; its form has changed", len(controllers))
	}
	return controllers
}

func parse(t *testing.T, importPath string) (files []*ast.File) {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-mod=readonly", "-f", "{{.Dir}}", importPath).Output()
	if err != nil {
		t.Fatalf("go list %s: %v", importPath, err)
	}
	names, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

func stringOf(t *testing.T, expression ast.Expr) string {
	t.Helper()
	literal, ok := expression.(*ast.BasicLit)
	if !ok {
		t.Fatalf("%T is not a literal", expression)
	}
	value, err := strconv.Unquote(literal.Value)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// TestNothingOfMachinesIsLinked guards the time that a first build takes. The command compiles every package listed.
func TestNothingOfMachinesIsLinked(t *testing.T) {
	out, err := exec.CommandContext(
		t.Context(), "go", "list", "-mod=readonly", "-deps", "trueup.dev/controlplane/cmd/trueup-controlplane",
	).Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := strings.Fields(string(out))
	const limit = 2330
	if len(packages) > limit {
		t.Errorf("the command compiles %d packages, want at most %d", len(packages), limit)
	}
	for _, prefix := range []string{
		"github.com/google/cadvisor/", "github.com/containerd/containerd/", "github.com/opencontainers/cgroups",
		"k8s.io/kubernetes/cmd/kube-controller-manager/app", "k8s.io/kubernetes/pkg/kubelet/eviction",
		"k8s.io/kubernetes/pkg/scheduler/framework", "k8s.io/kubernetes/pkg/volume/csi/",
	} {
		for _, name := range packages {
			if strings.HasPrefix(name, prefix) {
				t.Errorf("the command links %s", name)
				break
			}
		}
	}
}
