// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"

	"trueup.dev/internal/testkit/usermodule"
)

// One command adds trueup as a tool of a user's module. The module does not inherit the modules of a Kubernetes server.
func TestTool_OfAForeignModule(t *testing.T) {
	if testing.Short() {
		t.Skip("resolves and links a module of a user: with -short, TestVersion runs the command")
	}
	t.Parallel()
	if err := controlPlaneIsBuilt(); err != nil {
		t.Fatal(err)
	}
	m := usermodule.New(t, "../..")
	m.Run(t, "go", "mod", "init", "example.com/user")
	m.UseCheckout(t)
	m.Run(t, "go", "get", "-tool", "trueup.dev/cmd/trueup")
	if out := m.Run(t, "go", "tool", "trueup", "version"); !strings.HasPrefix(out, "trueup ") {
		t.Errorf("version: %q", out)
	}
	path := strings.TrimSpace(m.Run(t, "go", "tool", "trueup", "build"))
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		t.Errorf("build printed %q (error %v), want the path of the control plane", path, err)
	}
	for _, module := range []string{"k8s.io/kubernetes ", "go.etcd.io/etcd/server", "trueup.dev/controlplane v"} {
		if strings.Contains(m.Read(t, "go.mod"), module) || strings.Contains(m.Read(t, "go.sum"), module) {
			t.Errorf("go.mod or go.sum has %s", module)
		}
	}
}

// The tool needs only the go.sum entries of the library and of converge.
func TestTool_OfAModuleThatUsesTheLibrary(t *testing.T) {
	if testing.Short() {
		t.Skip("resolves and links a module of a user: with -short, TestVersion runs the command")
	}
	t.Parallel()
	m := usermodule.New(t, "../..")
	m.Run(t, "go", "mod", "init", "example.com/user")
	m.UseCheckout(t)
	m.Write(t, "main.go", "package main\n\nimport _ \"trueup.dev/reconcilers\"\n\nfunc main() {}\n")
	m.Write(t, "main_test.go", "package main\n\nimport _ \"trueup.dev/converge\"\n")
	m.Run(t, "go", "get", "-t", ".")
	for _, args := range [][]string{
		{"run", "trueup.dev/cmd/trueup", "version"},
		{"mod", "edit", "-tool", "trueup.dev/cmd/trueup"},
		{"tool", "trueup", "version"},
	} {
		m.Run(t, "go", args...)
	}
}
