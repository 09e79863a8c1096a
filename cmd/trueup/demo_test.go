// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/examples/website"
	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/sandbox"
)

func TestDemo(t *testing.T) {
	t.Parallel()
	c := start(t, "demo")
	host := hostIn(c.sees("Kubernetes v"))
	c.sees("see why it reconciles each Website at http://127.0.0.1:")
	children := c.children()
	if code := c.ends(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, c.output())
	}
	want := regexp.MustCompile(`^demo: ok: 4 websites ready, [1-9][0-9]* writes, 0 errors$`)
	if !want.MatchString(c.lastLine()) {
		t.Errorf("last line: %s", c.lastLine())
	}
	out := c.stdout.String()
	for _, part := range []string{
		"Ready at http://bakery.example.com", "2/2 servers, 4 ConfigMaps",
		"4 ConfigMaps have the new style, 2/2 servers are rolled out",
		"cinema and museum have other themes and are unchanged",
		"ConfigMap bakery-content was created again", "Service bakery was created again",
		"the DNS record museum.example.com is removed",
		"the finalizer is removed, and the Website no longer exists",
		"garbage collection has removed 1 ReplicaSet and 1 Pod",
		"reconciles", "conflicts", "websites/status",
	} {
		if !strings.Contains(out, part) {
			t.Errorf("output does not contain: %s", part)
		}
	}
	if strings.Contains(out, "\x1b") {
		t.Error("the output has colors in a pipe")
	}
	if t.Failed() {
		t.Log(c.output())
	}
	c.leavesNothing(children, host)
}

const ownSite = `apiVersion: demo.trueup.dev/v1
kind: Website
metadata: {name: alone, namespace: shops}
spec:
  domain: alone.example.com
  pages: [{name: index, title: Alone}]
---
apiVersion: v1
kind: Namespace
metadata: {name: shops}
`

func TestDemo_ownSites(t *testing.T) {
	t.Parallel()
	c := startNow(t, withoutCluster, "demo", "--memory", "-f", write(t, "own.yaml", ownSite))
	if code := c.ends(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, c.output())
	}
	if !strings.HasPrefix(c.lastLine(), "demo: ok: 1 websites ready, ") {
		t.Errorf("last line: %s", c.lastLine())
	}
	if want := "skipped: no Website has a themeRef; all use the built-in theme"; !strings.Contains(
		c.stdout.String(), want,
	) {
		t.Errorf("output does not contain: %s\n%s", want, c.output())
	}
}

func TestDemo_badInput(t *testing.T) {
	t.Parallel()
	invalid := write(t, "invalid.yaml", `apiVersion: v1
kind: ConfigMap
metadata: {name: fine}
---
apiVersion: demo.trueup.dev/v1
kind: Website
metadata: {name: shop}
spec:
  domain: Shop
  pages: [{name: index, title: Shop}]
---
apiVersion: demo.trueup.dev/v1
kind: Website
metadata: {name: blog}
spec: {domains: [x]}
`)
	malformed := write(t, "malformed.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\nkind: [\n")
	unknown := write(t, "unknown.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n")
	none := write(t, "none.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
	tests := map[string]struct {
		args []string
		want []string
	}{
		"missing": {
			args: []string{"-f", "absent.yaml"},
			want: []string{"error: absent.yaml: no such file or directory"},
		},
		"malformed": {
			args: []string{"-f", malformed},
			want: []string{"error: " + malformed + ": document 2 (line 5): malformed YAML: "},
		},
		"unknown kind": {
			args: []string{"-f", unknown},
			want: []string{
				"error: " + unknown + ": document 1 (line 1): kind: Pod of v1 is not supported; supported kinds: Website",
			},
		},
		"no site": {
			args: []string{"-f", none},
			want: []string{"error: no Website in " + none},
		},
		"invalid specs": {
			args: []string{"-f", invalid},
			want: []string{
				"error: " + invalid + `: document 2 (line 5): Website "shop": ` +
					`spec.domain: Invalid value: "Shop": must be at least two`,
				invalid + `: document 3 (line 12): Website "blog": spec.domains: unknown field`,
			},
		},
		"no time": {
			args: []string{"--timeout", "0s"},
			want: []string{"error: --timeout: must be greater than 0, got 0s"},
		},
		"no replicas": {
			args: []string{"--replicas=0"},
			want: []string{"error: --replicas: must be from 2 to 8, got 0"},
		},
		"replicas with flags that do not fit": {
			args: []string{"--replicas=9", "--stay", "-f", none},
			want: []string{
				"error: --replicas: must be from 2 to 8, got 9", "--filename: cannot be combined with --replicas",
				"--stay: cannot be combined with --replicas",
			},
		},
		"not a number of replicas": {
			args: []string{"--replicas=three"},
			want: []string{`error: invalid argument "three" for "--replicas" flag`},
		},
		"unknown flag": {args: []string{"--stays"}, want: []string{"error: unknown flag: --stays"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := startNow(t, withoutCluster, append([]string{"demo", "--memory"}, tc.args...)...)
			if code := c.ends(); code != 1 {
				t.Errorf("exit code %d, want 1", code)
			}
			for _, want := range tc.want {
				if !strings.Contains(c.stderr.String(), want) {
					t.Errorf("output does not contain: %s\n%s", want, c.output())
				}
			}
			c.leavesNothing(nil, "")
		})
	}
}

func TestDemo_neverReady(t *testing.T) {
	t.Parallel()
	c := startNow(t, withoutCluster, "demo", "--memory", "--timeout", "3s", "-f", write(t, "stuck.yaml", `apiVersion: demo.trueup.dev/v1
kind: Website
metadata: {name: shop}
spec:
  domain: shop.example.com
  themeRef: {name: paper}
  pages: [{name: index, title: Shop}]
`))
	if code := c.ends(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	want := `demo: failed: after 3s: Website shop is not ready: content ✗  deployment …  service …  record …  ` +
		`(ThemeNotFound: ConfigMap "paper" does not exist)`
	if c.lastLine() != want {
		t.Errorf("last line: %s\nwant:      %s", c.lastLine(), want)
	}
	c.leavesNothing(nil, "")
}

// A demo that shows everything fails if the controller reported errors.
func TestDemo_errorsOfTheController(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane: with -short, TestDemo_neverReady fails in memory")
	}
	t.Parallel()
	c := start(t, "demo", "-f", write(t, "own.yaml", ownSite))
	c.sees("Kubernetes v")
	folders, err := filepath.Glob(filepath.Join(c.temp, "trueup-controlplane-*"))
	if err != nil || len(folders) != 1 {
		t.Fatalf("directories of the control plane: %v (error %v)", folders, err)
	}
	inTheWay := filepath.Join(folders[0], "records") // in place of the directory that sites are published in
	if err := os.WriteFile(inTheWay, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.sees("record ✗")
	if err := os.Remove(inTheWay); err != nil {
		t.Fatal(err)
	}
	if code := c.ends(); code != 1 {
		t.Errorf("exit code %d, want 1\n%s", code, c.output())
	}
	if want := "demo: failed: the controller reported "; !strings.HasPrefix(c.lastLine(), want) ||
		!strings.Contains(c.lastLine(), "not a directory") {
		t.Errorf("last line: %s", c.lastLine())
	}
	if !strings.Contains(c.stdout.String(), "its children are removed") {
		t.Errorf("the demo did not show everything\n%s", c.output())
	}
}

// skipInShort skips a case of a table with -short, unless it is one of those that stay. Each case starts a control
// plane and deploys sites.
func skipInShort(t *testing.T, stays bool) {
	t.Helper()
	if testing.Short() && !stays {
		t.Skip("starts a control plane for one more moment: the other cases remain with -short")
	}
}

func TestDemo_interrupted(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		signal syscall.Signal
		at     string
		want   int
		short  bool
	}{
		"while it starts":      {syscall.SIGINT, "Start the sandbox", 130, true},
		"in the middle":        {syscall.SIGINT, "Ready at", 130, false},
		"terminated by others": {syscall.SIGTERM, "Change the theme", 143, true},
	} {
		t.Run(name, func(t *testing.T) {
			skipInShort(t, tc.short)
			t.Parallel()
			c := start(t, "demo")
			c.sees(tc.at)
			children := c.children()
			c.signal(tc.signal)
			if code := c.ends(); code != tc.want {
				t.Errorf("exit code %d, want %d\n%s", code, tc.want, c.output())
			}
			c.leavesNothing(children, "")
		})
	}
}

func TestDemo_stays(t *testing.T) {
	t.Parallel()
	c := startNow(t, withoutCluster, "demo", "--memory", "--stay", "-f", write(t, "own.yaml", ownSite))
	_, kubeconfig, _ := strings.Cut(c.sees("export KUBECONFIG="), "=")
	if line := c.sees("kubectl edit"); !strings.HasSuffix(line, "kubectl edit website alone -n shops") {
		t.Errorf("how to edit: %s", line)
	}
	_, console, _ := strings.Cut(c.sees("trueup why website alone"), "--url ")
	c.sees("demo: ok: 1 websites ready, ")

	// The site was deleted at the end, but the controller reconciles a new one.
	k := connect(t, kubeconfig)
	site := &websitev1.Website{}
	site.Namespace, site.Name = "shops", "later"
	site.Spec.Domain, site.Spec.Pages = "later.example.com", []websitev1.Page{{Name: "index", Title: "Later"}}
	if err := k.Create(t.Context(), site); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool {
		err := k.Get(t.Context(), client.ObjectKeyFromObject(site), site)
		return err == nil && site.Status.URL == "http://later.example.com"
	})
	why := startNow(t, nil, "why", "website", "shops/later", "--url", console)
	if code := why.ends(); code != 0 || !strings.Contains(why.stdout.String(), "create Deployment shops/later") {
		t.Errorf("trueup why: exit code %d\n%s", code, why.output())
	}

	c.signal(syscall.SIGINT)
	if code := c.ends(); code != 0 {
		t.Errorf("exit code %d, want 0, because the demo was complete\n%s", code, c.output())
	}
	if !strings.HasPrefix(c.lastLine(), "demo: ok: ") {
		t.Errorf("last line: %s", c.lastLine())
	}
	c.leavesNothing(nil, "")
}

func TestDemo_killed(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]string{"in the middle": "Ready at", "while it stays": "demo: ok:"} {
		t.Run(name, func(t *testing.T) {
			skipInShort(t, name == "in the middle")
			t.Parallel()
			c := start(t, "demo", "--stay")
			host := hostIn(c.sees("Kubernetes v"))
			c.sees(at)
			children := c.children()
			if len(children) == 0 && len(os.Getenv(sandbox.KubeconfigVariable)) == 0 {
				t.Log("cannot list the processes of the command on this platform; checking directories and ports only")
			}
			c.signal(syscall.SIGKILL)
			c.ends()
			c.leavesNothing(children, host)
		})
	}
}

func TestDemo_endOfTheControlPlane(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("finds the process of the control plane in /proc")
	}
	for name, at := range map[string]string{
		"immediately": "Kubernetes v", "in the middle": "Ready at", "while it stays": "demo: ok:",
	} {
		t.Run(name, func(t *testing.T) {
			skipInShort(t, name == "in the middle")
			t.Parallel()
			c := start(t, "demo", "--stay")
			c.sees(at)
			children := c.children()
			if len(children) != 1 {
				t.Fatalf("children = %v, want one", children)
			}
			if err := syscall.Kill(children[0], syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if code := c.ends(); code != 1 {
				t.Errorf("exit code %d, want 1", code)
			}
			if want := "demo: failed: the control plane has ended: "; !strings.HasPrefix(c.lastLine(), want) {
				t.Errorf("last line: %s\nwant:      %s…", c.lastLine(), want)
			}
			c.leavesNothing(children, "")
		})
	}
}

// In an existing cluster the demo only creates objects that do not exist, and deletes them again.
func TestDemo_existingCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane: with -short, TestDemo and TestDemo_memory remain")
	}
	t.Parallel()
	if err := controlPlaneIsBuilt(); err != nil {
		t.Fatal(err)
	}
	sb, err := sandbox.Start(t.Context(), sandbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer sb.Stop()
	k := connect(t, sb.KubeconfigPath())
	existing := []string{sandbox.KubeconfigVariable + "=" + sb.KubeconfigPath()}

	c := startWith(t, existing, "demo")
	if code := c.ends(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, c.output())
	}
	var sites websitev1.WebsiteList
	if err := k.List(t.Context(), &sites); err != nil || len(sites.Items) != 0 {
		t.Errorf("%d sites left (error %v)", len(sites.Items), err)
	}
	theme := &corev1.ConfigMap{}
	theme.Namespace, theme.Name = "default", "theme-paper"
	if err := k.Get(t.Context(), client.ObjectKeyFromObject(theme), theme); !apierrs.IsNotFound(err) {
		t.Errorf("the theme still exists or cannot be read: %v", err)
	}
	c.leavesNothing(nil, "")

	mine := &corev1.ConfigMap{Data: map[string]string{"mine": "unchanged"}}
	mine.Namespace, mine.Name = "default", "theme-paper"
	if err := k.Create(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	c = startWith(t, existing, "demo")
	if code := c.ends(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	if want := `ConfigMap "theme-paper" already exists in this cluster`; !strings.Contains(c.stderr.String(), want) {
		t.Errorf("output does not contain: %s\n%s", want, c.output())
	}
	version := mine.ResourceVersion
	if err := k.Get(t.Context(), client.ObjectKeyFromObject(mine), mine); err != nil || mine.ResourceVersion != version {
		t.Errorf("the ConfigMap was changed: version %s, was %s (error %v)", mine.ResourceVersion, version, err)
	}
	c.leavesNothing(nil, "")
}

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func connect(t *testing.T, kubeconfig string) client.Client {
	t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	scheme := k8sruntime.NewScheme()
	for _, add := range []func(*k8sruntime.Scheme) error{clientgoscheme.AddToScheme, website.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	k, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return k
}
