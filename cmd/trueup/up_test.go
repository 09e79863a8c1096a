// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
		t.Errorf("the kubeconfig still exists or cannot be read: %v", err)
	}
	c.leavesNothing(children, host)
}

func TestUp_keepsItsData(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane twice: with -short, TestUp and TestUp_memory remain")
	}
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

func TestUp_doesNotOverwriteKubeconfig(t *testing.T) {
	t.Parallel()
	mine := write(t, "kubeconfig", "mine")
	c := startNow(t, withoutCluster, "up", "--memory", "--kubeconfig", mine)
	if code := c.ends(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	// On a busy machine, progress of the start precedes the error.
	if want := "error: --kubeconfig: " + mine + " already exists\n"; !strings.HasSuffix(c.stderr.String(), want) {
		t.Errorf("stderr = %q, want it to end with %q", c.stderr, want)
	}
	if content, err := os.ReadFile(mine); string(content) != "mine" {
		t.Errorf("the file now contains %q (error %v)", content, err)
	}
	c.leavesNothing(nil, "")
}

const abandonedKubeconfig = `apiVersion: v1
kind: Config
current-context: trueup-controlplane
contexts:
- {name: trueup-controlplane, context: {cluster: trueup-controlplane, user: trueup-controlplane}}
clusters:
- {name: trueup-controlplane, cluster: {server: "https://127.0.0.1:1"}}
users:
- {name: trueup-controlplane, user: {token: x}}
`

// TestUp_forPrograms starts with a file that a killed program has left, in a directory with a blank.
func TestUp_forPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane: with -short, TestUp and TestUp_memory remain")
	}
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "my cluster")
	left := write(t, "kubeconfig", abandonedKubeconfig)
	c := start(t, "up", "--kubeconfig", left, "--dir", dir, "--controllers", "none", "--pods=false", "-o", "json")
	var line upLine
	if err := json.Unmarshal([]byte(c.sees(`"url":`)), &line); err != nil {
		t.Fatal(err)
	}
	if want := (upLine{URL: line.URL, Kubeconfig: left, Dir: dir}); line != want || line.URL == "" {
		t.Errorf("got %+v, want %+v", line, want)
	}
	// Without controllers no namespace gets its service account.
	account := client.ObjectKey{Namespace: "default", Name: "default"}
	err := connect(t, left).Get(t.Context(), account, &corev1.ServiceAccount{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("reading a service account without controllers: %v, want that it does not exist", err)
	}
	c.signal(syscall.SIGINT)
	if code := c.ends(); code != 0 {
		t.Errorf("exit code %d, want 0\n%s", code, c.output())
	}
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("the kubeconfig still exists or cannot be read: %v", err)
	}
}

func TestUp_detectsTheEndOfTheControlPlane(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane: with -short, TestDemo_endOfTheControlPlane detects the same")
	}
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
		t.Errorf("output does not contain: %s\n%s", want, c.output())
	}
	c.leavesNothing(children, "")
}

func TestVersion(t *testing.T) {
	t.Parallel()
	c := startNow(t, nil, "version")
	if code := c.ends(); code != 0 || !strings.HasPrefix(c.stdout.String(), "trueup ") {
		t.Errorf("exit code %d\n%s", code, c.output())
	}
}

func TestUnknownCommand(t *testing.T) {
	t.Parallel()
	c := startNow(t, nil, "upp")
	if code := c.ends(); code != 1 || !strings.Contains(c.stderr.String(), `error: unknown command "upp"`) {
		t.Errorf("exit code %d\n%s", code, c.output())
	}
}

// eventually waits until condition returns true.
func eventually(t *testing.T, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatal("the condition is not met after a minute")
		}
		<-ticker.C
	}
}

const guestbook = `apiVersion: example.com/v1
kind: Guestbook
metadata: {name: mine, namespace: guests}
spec: {pages: 3}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: by-default}
---
apiVersion: v1
kind: Namespace
metadata: {name: guests}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: guestbooks.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: guestbooks, kind: Guestbook}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, properties: {pages: {type: integer}}}}
`

func TestUp_appliesFiles(t *testing.T) {
	t.Parallel()
	c := startNow(t, withoutCluster, "up", "--memory", "-f", write(t, "guestbook.yaml", guestbook))
	_, kubeconfig, _ := strings.Cut(c.sees("export KUBECONFIG="), "=")
	k := connect(t, kubeconfig)
	book := &unstructured.Unstructured{}
	book.SetAPIVersion("example.com/v1")
	book.SetKind("Guestbook")
	if err := k.Get(t.Context(), client.ObjectKey{Namespace: "guests", Name: "mine"}, book); err != nil {
		t.Error(err)
	}
	if err := k.Get(
		t.Context(), client.ObjectKey{Namespace: "default", Name: "by-default"}, &corev1.ConfigMap{},
	); err != nil {
		t.Error(err)
	}
	c.signal(syscall.SIGINT)
	if code := c.ends(); code != 0 || !strings.Contains(c.stdout.String(), `applied Guestbook "mine"`) {
		t.Errorf("exit code %d\n%s", code, c.output())
	}
}

func TestUp_doesNotApplyMistakes(t *testing.T) {
	t.Parallel()
	unknown := write(t, "unknown.yaml", "apiVersion: example.com/v1\nkind: Teapot\nmetadata: {name: a}\n")
	for file, want := range map[string]string{
		"absent.yaml": "error: absent.yaml: no such file or directory",
		unknown: "error: " + unknown + `: document 1 (line 1): Teapot "a": ` +
			`the API does not serve this kind of example.com/v1`,
	} {
		c := startNow(t, withoutCluster, "up", "--memory", "-f", file)
		if code := c.ends(); code != 1 || !strings.Contains(c.stderr.String(), want) {
			t.Errorf("exit code %d, want 1 and %q\n%s", code, want, c.output())
		}
		c.leavesNothing(nil, "")
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"help"}, {"--help"}, {"help", "up"}, {"up", "-h"}, {"demo", "--help"}} {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), args, &stdout, &stderr); code != 0 || stderr.Len() > 0 ||
			!strings.Contains(stdout.String(), "Usage:\n  trueup ") {
			t.Errorf("%q: exit code %d\n%s%s", args, code, &stdout, &stderr)
		}
		if len(args) == 2 && !strings.Contains(stdout.String(), "--filename path") {
			t.Errorf("%q: the help does not contain the flags:\n%s", args, &stdout)
		}
	}
}
