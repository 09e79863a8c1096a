// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestUp(t *testing.T) {
	t.Parallel()
	extra := filepath.Join(t.TempDir(), "kubeconfig")
	c := start(t, "up", "--kubeconfig", extra)
	host := hostIn(c.sees("Kubernetes is up at"))
	if _, kubeconfig, _ := strings.Cut(c.sees("export KUBECONFIG="), "="); kubeconfig != extra {
		t.Errorf("KUBECONFIG=%s, want %s", kubeconfig, extra)
	}
	c.sees("Ctrl-C stops it and removes everything")
	if info, err := os.Stat(extra); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the kubeconfig is %v (error %v), want mode 0600", info, err)
	}
	var namespace corev1.Namespace
	if err := connect(t, extra).Get(t.Context(), client.ObjectKey{Name: "kube-system"}, &namespace); err != nil {
		t.Error(err)
	}
	children := c.children()
	c.signal(syscall.SIGINT)
	if code := c.ends(); code != 0 {
		t.Errorf("exit code %d, want 0\n%s", code, c.output())
	}
	if _, err := os.Stat(extra); !os.IsNotExist(err) {
		t.Errorf("the kubeconfig is left, or no telling: %v", err)
	}
	c.leavesNothing(children, host)
}

func TestUp_keepsItsData(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "cluster")
	for round := range 2 {
		c := start(t, "up", "--dir", dir)
		_, kubeconfig, _ := strings.Cut(c.sees("export KUBECONFIG="), "=")
		c.sees("keeps the data")
		k := connect(t, kubeconfig)
		namespace := &corev1.Namespace{}
		namespace.Name = "kept"
		if round == 0 {
			if err := k.Create(t.Context(), namespace); err != nil {
				t.Fatal(err)
			}
		} else if err := k.Get(t.Context(), client.ObjectKeyFromObject(namespace), namespace); err != nil {
			t.Error(err)
		}
		c.signal(syscall.SIGTERM)
		if code := c.ends(); code != 0 {
			t.Errorf("exit code %d, want 0\n%s", code, c.output())
		}
	}
}

func TestUp_overwritesNoKubeconfig(t *testing.T) {
	t.Parallel()
	mine := write(t, "kubeconfig", "mine")
	c := start(t, "up", "--kubeconfig", mine)
	if code := c.ends(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	if want := "error: --kubeconfig: " + mine + " exists, and is not overwritten\n"; c.stderr.String() != want {
		t.Errorf("stderr = %q, want %q", c.stderr, want)
	}
	if content, err := os.ReadFile(mine); string(content) != "mine" {
		t.Errorf("it is now %q (error %v)", content, err)
	}
	c.leavesNothing(nil, "")
}

func TestUp_noticesTheEndOfTheControlPlane(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("finds the process of the control plane in /proc")
	}
	c := start(t, "up")
	c.sees("Ctrl-C")
	children := c.children()
	if len(children) != 1 {
		t.Fatalf("children = %v, want one", children)
	}
	if err := syscall.Kill(children[0], syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := c.ends(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	if want := "error: the control plane has ended: "; !strings.Contains(c.stderr.String(), want) {
		t.Errorf("not said: %s\n%s", want, c.output())
	}
	c.leavesNothing(children, "")
}

func TestVersion(t *testing.T) {
	t.Parallel()
	c := start(t, "version")
	if code := c.ends(); code != 0 || !strings.HasPrefix(c.stdout.String(), "trueup ") {
		t.Errorf("exit code %d\n%s", code, c.output())
	}
}

func TestUnknownCommand(t *testing.T) {
	t.Parallel()
	c := start(t, "upp")
	if code := c.ends(); code != 1 || !strings.Contains(c.stderr.String(), `error: unknown command "upp"`) {
		t.Errorf("exit code %d\n%s", code, c.output())
	}
}

// eventually waits until something is so.
func eventually(t *testing.T, so func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for !so() {
		if time.Now().After(deadline) {
			t.Fatal("it is not so within a minute")
		}
		<-ticker.C
	}
}
