// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const foreignProgram = `package main

import (
	"context"
	"fmt"
	"os"

	"trueup.dev/controlplane"
)

func main() {
	options := controlplane.Options{Controllers: []string{controlplane.NoControllers}}
	cp, err := controlplane.Start(context.Background(), options)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(cp.URL())
	if _, err := controlplane.Start(context.Background(), controlplane.Options{}); err != controlplane.ErrAlreadyStarted {
		fmt.Fprintln(os.Stderr, "second Start:", err)
		os.Exit(1)
	}
	if err := cp.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := cp.Err(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
`

// moduleFile is the part of the output of "go mod edit -json" that this test reads.
type moduleFile struct {
	Module  struct{ Path string }
	Go      string
	Require []struct{ Path, Version string }
	Replace []struct {
		Old struct{ Path string }
	}
}

func readModuleFile(t *testing.T, dir string) moduleFile {
	t.Helper()
	command := exec.Command("go", "mod", "edit", "-json")
	command.Dir = dir
	output, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	var file moduleFile
	if err := json.Unmarshal(output, &file); err != nil {
		t.Fatal(err)
	}
	return file
}

func moduleRoot(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// "go install ...@version" rejects modules with replace directives, and importers would have to repeat each of them.
func TestModuleHasNoReplace(t *testing.T) {
	file := readModuleFile(t, moduleRoot(t))
	if file.Module.Path != "trueup.dev/controlplane" {
		t.Fatalf("got module %s, so this test reads the wrong file", file.Module.Path)
	}
	for _, replace := range file.Replace {
		t.Errorf("go.mod replaces %s", replace.Old.Path)
	}
}

// A module without requirements on Kubernetes' staging modules can require this module, be tidied, build and run. It
// only replaces this module.
func TestForeignModuleImportsTheControlPlane(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program that includes all of Kubernetes")
	}
	root, temp := moduleRoot(t), t.TempDir()
	dir := filepath.Join(temp, "module") // the go command ignores a go.mod in TMPDIR itself
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	ours := readModuleFile(t, root)
	module := fmt.Sprintf("module foreign.example.com/program\n\ngo %s\n\nrequire %s v0.0.0\n\nreplace %s => %s\n",
		ours.Go, ours.Module.Path, ours.Module.Path, root)
	for name, content := range map[string]string{"go.mod": module, "main.go": foreignProgram} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(name string, args ...string) string {
		t.Helper()
		command := exec.Command(name, args...)
		command.Dir = dir
		command.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "TMPDIR="+temp)
		var stdout, stderr bytes.Buffer
		command.Stdout, command.Stderr = &stdout, &stderr
		if err := command.Run(); err != nil {
			t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, &stdout, &stderr)
		}
		return stdout.String()
	}
	run("go", "mod", "tidy")
	tidied := readModuleFile(t, dir)
	if len(tidied.Replace) != 1 {
		t.Errorf("replaces = %v, want only that of this module", tidied.Replace)
	}
	run("go", "build", "-o", "program", ".")
	output := run(filepath.Join(dir, "program"))
	if !strings.HasPrefix(output, "https://127.0.0.1:") || strings.Count(output, "\n") != 1 {
		t.Errorf("program printed %q, want only the URL", output)
	}
	if left, err := filepath.Glob(filepath.Join(temp, "trueup-controlplane-*")); err != nil || len(left) > 0 {
		t.Errorf("directories left: %v, %v", left, err)
	}
}
