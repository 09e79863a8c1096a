// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trueup.dev/graph"
)

func TestGraph_OfTheExample(t *testing.T) {
	t.Parallel()
	c := startNow(t, nil, "graph", "--package", "../../examples/database/cmd")
	if code := c.ends(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, c.output())
	}
	out := c.stdout.String()
	for _, want := range []string{
		"Database (reconcilers.ResourceReconciler) · for Database.database.trueup.dev · writes status\n",
		"├─ 1: Certificate (reconcilers.SyncReconciler) · tracks Secret\n",
		"├─ 6: StatefulSet (reconcilers.ChildReconciler) · owns StatefulSet.apps\n",
		"· webhook /validate-database-trueup-dev-v1-database ·",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no line %q in:\n%s", want, out)
		}
	}
}

func TestRBAC_OfTheExample(t *testing.T) {
	if testing.Short() {
		t.Skip("links a program six times: with -short, TestGraph_OfTheExample links it, and graph/rbac tests the rules")
	}
	t.Parallel()
	role, err := os.ReadFile("../../examples/database/config/rbac/role.yaml")
	if err != nil {
		t.Fatal(err)
	}
	pkg := []string{"rbac", "--package", "../../examples/database/cmd"}
	c := startNow(t, nil, append(pkg, "--name", "database-manager", "--leader-election")...)
	if code := c.ends(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, c.output())
	}
	if diff := cmp.Diff(string(role), c.stdout.String()); diff != "" {
		t.Errorf("role (-file +printed):\n%s", diff)
	}

	file := filepath.Join(t.TempDir(), "config", "rbac", "role.yaml") // the directory is made
	c = startNow(t, nil, append(pkg, "--namespace", "shop", "--output", file)...)
	if code := c.ends(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, c.output())
	}
	content, err := os.ReadFile(file)
	if err != nil || !strings.HasPrefix(string(content), "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\n") ||
		!strings.Contains(string(content), "  name: manager-role\n  namespace: shop\n") {
		t.Errorf("error %v, file:\n%s", err, content)
	}

	c = startNow(t, nil, append(pkg, "--shards", "databases")...)
	if code := c.ends(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, c.output())
	}
	for _, want := range []string{
		"kind: ControllerRing\nmetadata:\n  name: databases\n", "    - group: apps\n      resource: statefulsets\n",
		"kind: ClusterRole\nmetadata:\n  name: sharding:controllerring:databases\n",
		"  - databases\n  verbs:\n  - get\n  - list\n  - patch\n  - watch\n",
	} {
		if !strings.Contains(c.stdout.String(), want) {
			t.Errorf("no %q in:\n%s", want, c.stdout.String())
		}
	}

	for flags, want := range map[string]string{
		"--shards a --leader-election": "error: --shards and --leader-election exclude each other",
		"--markers --namespace a":      "error: --markers and --namespace exclude each other",
		"--config Remote":              `error: --config: no WithConfig "Remote" declares permissions`,
	} {
		c := startNow(t, nil, append(pkg, strings.Fields(flags)...)...)
		if code := c.ends(); code != 1 || !strings.Contains(c.output(), want) {
			t.Errorf("%s: exit code %d, want 1 and %q in:\n%s", flags, code, want, c.output())
		}
	}
}

func TestGraph_Mistakes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"format":     {[]string{"--format", "png"}, `error: --format must be text, mermaid, dot, svg or json, got "png"`},
		"no program": {[]string{"--package", "../../graph"}, "error: --package ../../graph is not a main package"},
		"no line":    {[]string{"--package", "../../examples/quickstart"}, "does not import trueup.dev/graph; call"},
		"no package": {[]string{"--package", "./nowhere"}, "error: --package ./nowhere: "},
	} {
		c := startNow(t, nil, append([]string{"graph"}, tc.args...)...)
		if code := c.ends(); code != 1 || !strings.Contains(c.output(), tc.want) {
			t.Errorf("%s: exit code %d, want 1 and %q in:\n%s", name, code, tc.want, c.output())
		}
	}
}

// TestGraph_AsADrawing draws with the Graphviz of graph/svg.
func TestGraph_AsADrawing(t *testing.T) {
	if testing.Short() {
		t.Skip("links two programs: with -short, graph/svg draws")
	}
	bin := t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(bin, "dot"), ".")
	build.Dir = "../../graph/svg"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build, err, out)
	}
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	c := startNow(t, nil, "graph", "--package", "../../examples/database/cmd", "--format", "svg")
	if code := c.ends(); code != 0 || !strings.Contains(c.stdout.String(), ">owns</text>\n") {
		t.Errorf("exit code %d, want 0 and an SVG file:\n%s", code, c.output())
	}

	t.Setenv("PATH", t.TempDir())
	_, err := svg(t.Context(), &graph.Graph{})
	want := "no program dot on the PATH: install Graphviz, or run: " + withoutGraphviz
	if err == nil || err.Error() != want {
		t.Errorf("without Graphviz: error %v, want %q", err, want)
	}
}
