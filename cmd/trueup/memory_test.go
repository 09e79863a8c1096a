// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/sandbox"
)

const withDeployment = `apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: nginx}]}
`

func TestUp_memory(t *testing.T) {
	t.Parallel()
	extra := filepath.Join(t.TempDir(), "my kubeconfig")
	crds := filepath.Join("..", "..", "examples", "website", "config", "crd", "bases")
	c := startNow(t, nil, "up", "--memory", "--kubeconfig", extra, "-f", crds, "-f", write(t, "shop.yaml", withDeployment))
	c.sees("This is the API in memory")
	host := hostIn(c.sees("Kubernetes is up at"))
	if _, got, _ := strings.Cut(c.sees("export KUBECONFIG="), "="); got != "'"+extra+"'" {
		t.Errorf("KUBECONFIG=%s, want it in quotes", got)
	}
	k := connect(t, extra)
	eventually(t, func() bool {
		web := &appsv1.Deployment{}
		err := k.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, web)
		return err == nil && web.Status.AvailableReplicas == 2
	})
	sites := &unstructured.UnstructuredList{Object: map[string]any{
		"apiVersion": "demo.trueup.dev/v1", "kind": "WebsiteList",
	}}
	if err := k.List(t.Context(), sites); err != nil {
		t.Error(err)
	}
	if children := c.children(); len(children) > 0 {
		t.Errorf("it has started processes: %v", children)
	}
	c.signal(syscall.SIGINT)
	if code := c.ends(); code != 0 {
		t.Errorf("exit code %d, want 0\n%s", code, c.output())
	}
	if _, err := os.Stat(extra); !os.IsNotExist(err) {
		t.Errorf("the kubeconfig still exists or cannot be read: %v", err)
	}
	c.leavesNothing(nil, host)
}

// TestUp_memoryAfterKill checks that the next start removes the files of a killed process.
func TestUp_memoryAfterKill(t *testing.T) {
	t.Parallel()
	extra := filepath.Join(t.TempDir(), "kubeconfig")
	killed := startNow(t, nil, "up", "--memory", "--kubeconfig", extra)
	killed.sees("Kubernetes is up at")
	killed.signal(syscall.SIGKILL)
	killed.ends()
	next := startNow(t, []string{"TMPDIR=" + killed.temp}, "up", "--memory", "--kubeconfig", extra, "-o", "json")
	var line upLine
	if err := json.Unmarshal([]byte(next.sees(`"url":`)), &line); err != nil {
		t.Fatal(err)
	}
	var namespace corev1.Namespace
	if err := connect(t, extra).Get(t.Context(), client.ObjectKey{Name: "default"}, &namespace); err != nil {
		t.Error(err)
	}
	next.signal(syscall.SIGTERM)
	if code := next.ends(); code != 0 {
		t.Errorf("exit code %d, want 0\n%s", code, next.output())
	}
	killed.leavesNothing(nil, "")
}

func TestUp_memoryRefusesFlags(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"error: --dir: the API in memory keeps no data": {"--dir", t.TempDir()},
		"Controllers: the API in memory has":            {"--controllers", "deployment-controller"},
	} {
		c := startNow(t, nil, append([]string{"up", "--memory"}, args...)...)
		if code := c.ends(); code != 1 || !strings.Contains(c.stderr.String(), want) {
			t.Errorf("exit code %d, want 1 and %q\n%s", code, want, c.output())
		}
	}
}

var demoEnd = regexp.MustCompile(`^demo: ok: 4 websites ready, [1-9][0-9]* writes, 0 errors$`)

// TestDemo_memory runs the demo where no control plane has been built.
func TestDemo_memory(t *testing.T) {
	t.Parallel()
	nothingBuilt := []string{
		"XDG_CACHE_HOME=" + t.TempDir(), sandbox.BinaryVariable + "=", sandbox.KubeconfigVariable + "=",
	}
	for name, args := range map[string][]string{"by default": nil, "with --memory": {"--memory"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := startNow(t, nothingBuilt, append([]string{"demo"}, args...)...)
			if code := c.ends(); code != 0 || !demoEnd.MatchString(c.lastLine()) {
				t.Fatalf("exit code %d\n%s", code, c.output())
			}
			if !strings.Contains(c.stdout.String(), "the API in memory of Kubernetes v1.37") {
				t.Errorf("the output does not name the API:\n%s", c.output())
			}
			if says := strings.Contains(c.stderr.String(), "trueup demo --real builds it"); says != (args == nil) {
				t.Errorf("it offers --real: %t\n%s", says, c.output())
			}
			c.leavesNothing(nil, "")
		})
	}
}

func TestDemo_backends(t *testing.T) {
	t.Parallel()
	c := startNow(t, nil, "demo", "--memory", "--real")
	if code := c.ends(); code != 1 || !strings.Contains(c.stderr.String(), "--memory and --real") {
		t.Errorf("exit code %d, want 1\n%s", code, c.output())
	}
	for _, flag := range []string{"--memory", "--replicas=3"} {
		c = startNow(t, []string{sandbox.KubeconfigVariable + "=file"}, "demo", flag)
		if code := c.ends(); code != 1 || !strings.Contains(c.stderr.String(), "selects an existing cluster") {
			t.Errorf("%s: exit code %d, want 1\n%s", flag, code, c.output())
		}
	}
}

// BenchmarkUp_memory measures the time from the start of the process until the API is ready.
func BenchmarkUp_memory(b *testing.B) {
	dir := b.TempDir()
	var total time.Duration
	for b.Loop() {
		command := exec.Command(binary, "up", "--memory", "-o", "json")
		command.Env = append(os.Environ(), "TMPDIR="+dir)
		out, err := command.StdoutPipe()
		if err != nil {
			b.Fatal(err)
		}
		began := time.Now()
		if err := command.Start(); err != nil {
			b.Fatal(err)
		}
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			b.Fatal(err)
		}
		total += time.Since(began)
		if err := command.Process.Signal(syscall.SIGINT); err != nil {
			b.Fatal(err)
		}
		if err := command.Wait(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(total.Milliseconds())/float64(b.N), "ms-to-ready")
}
