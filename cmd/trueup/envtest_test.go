// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"trueup.dev/sandbox"
)

func TestEnvtestCommand(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "a cache")
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("HOME", cache) // of the cache on other systems
	// The command links the binary and does not run it.
	t.Setenv(sandbox.BinaryVariable, binary)
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"envtest"}, &stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	line := stdout.String()
	dir, err := exec.CommandContext(t.Context(), "sh", "-c", line+`printf %s "$KUBEBUILDER_ASSETS"`).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if target, err := os.Readlink(filepath.Join(string(dir), name)); err != nil || target != binary {
			t.Errorf("%s links to %q (error %v), want %q", name, target, err, binary)
		}
	}
	stdout.Reset()
	if code := run(t.Context(), []string{"envtest", "-p", "path"}, &stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	if got, want := stdout.String(), string(dir)+"\n"; got != want {
		t.Errorf("-p path prints %q, want %q", got, want)
	}
	stderr.Reset()
	if code := run(t.Context(), []string{"envtest", "-p", "json"}, &stdout, &stderr); code != 1 ||
		!strings.Contains(stderr.String(), `--print: must be "env" or "path", got "json"`) {
		t.Errorf("exit code %d: %s", code, &stderr)
	}
}
