// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"trueup.dev/internal/memapi/apiserver"
)

// commands are run by kubectl in this order. What they print, including errors, must match the expression.
var commands = []struct{ args, input, want string }{
	{args: "get namespaces", want: `(?m)^default +Active +\d+`},
	{args: "api-resources --api-group=apps", want: `(?m)^deployments +deploy +apps/v1 +true +Deployment$`},
	{args: "apply -f -", input: thingDefinition, want: `things.conformance.trueup.dev created`},
	{args: "get crd", want: `(?m)^things.conformance.trueup.dev +\d+`},
	{args: "explain thing.spec.size", want: `FIELD: size <integer>`},
	{args: "explain deployment.spec.replicas", want: `Number of desired pods`},
	{args: "create namespace shop", want: `namespace/shop created`},
	{args: "apply -n shop -f -", input: webDeployment, want: `deployment.apps/web created`},
	{args: "rollout status -n shop deployment/web --timeout=10s", want: `successfully rolled out`},
	{args: "get -n shop deployment", want: `(?m)^web +2 +2 +2 +2 +\d+`},
	{args: "get -n shop pods -o wide", want: `(?m)^web-.* True +Running +\d+`},
	{args: "apply -n shop -f -", input: webDeployment, want: `deployment.apps/web unchanged`},
	{
		args: "apply -n shop -f -", input: strings.Replace(webDeployment, `"replicas"`, `"replcas"`, 1),
		want: `strict decoding error: unknown field "spec.replcas"`,
	},
	{args: "scale -n shop deployment/web --replicas=3", want: `deployment.apps/web scaled`},
	{
		args: "wait -n shop --for=jsonpath={.status.availableReplicas}=3 deployment/web --timeout=10s",
		want: `condition met`,
	},
	{args: "set image -n shop deployment/web c=nginx:2", want: `image updated`},
	{args: "rollout status -n shop deployment/web --timeout=10s", want: `successfully rolled out`},
	{args: "rollout history -n shop deployment/web", want: `(?m)^2 `},
	{args: "rollout undo -n shop deployment/web", want: `rolled back`},
	{args: "label -n shop deployment/web tier=front", want: `labeled`},
	{args: "get -n shop all -l tier=front", want: `deployment.apps/web`},
	{args: "patch -n shop deployment web -p {\"spec\":{\"replicas\":1}}", want: `patched`},
	{args: "diff -n shop -f -", input: webDeployment, want: `replicas: 2`},
	{
		args:  "apply -n shop --server-side -f -",
		input: aThing("a", `{"color":"red"}`),
		want:  `thing.conformance.trueup.dev/a serverside-applied`,
	},
	{args: "get -n shop things", want: `(?m)^a +2$`},
	{args: "get -n shop th a -o yaml", want: `(?m)^  size: 2$`},
	{args: "apply -n shop -f -", input: aThing("b", `{"color":"blue"}`), want: `Unsupported value: "blue"`},
	{args: "scale -n shop thing/a --replicas=4", want: `scaled`},
	{args: "get -n shop thing a -o jsonpath={.spec.size}", want: `^4$`},
	{args: "auth can-i create pods", want: `^yes`},
	{args: "auth whoami", want: `trueup-memory`},
	{args: "logs -n shop deployment/web", want: `does not have the subresource pods/log`},
	{args: "get -n shop nothings", want: `the server doesn't have a resource type "nothings"`},
	{args: "delete -n shop deployment web", want: `"web" deleted`},
	{
		args: "wait -n shop --for=delete pods --all --timeout=10s",
		want: `condition met|^error: no matching resources found|^$`,
	},
	{args: "delete namespace shop --timeout=10s", want: `"shop" deleted`},
	{args: "delete crd things.conformance.trueup.dev --timeout=10s", want: `deleted`},
	{args: "get things", want: `NotFound|have a resource type`}, // kubectl caches resources
}

// TestServer_kubectl runs the usual commands of kubectl, if it is installed.
func TestServer_kubectl(t *testing.T) {
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("kubectl is not installed")
	}
	s := start(t, apiserver.Options{})
	home := t.TempDir()
	run := func(ctx context.Context, args []string, input string) string {
		command := exec.CommandContext(ctx, kubectl, args...)
		command.Env = append(
			os.Environ(),
			"KUBECONFIG="+s.KubeconfigPath(),
			"HOME="+home,
			"KUBECACHEDIR="+filepath.Join(home, "cache"),
		)
		command.Stdin = strings.NewReader(input)
		out, err := command.CombinedOutput()
		if ctx.Err() != nil {
			t.Fatalf("kubectl %s: %v\n%s", args, err, out)
		}
		return string(bytes.TrimSpace(out))
	}
	for _, c := range commands {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		got := run(ctx, strings.Fields(c.args), c.input)
		cancel()
		if !regexp.MustCompile(c.want).MatchString(got) {
			t.Errorf("kubectl %s printed:\n%s\nwant %s", c.args, got, c.want)
		}
	}
}

// TestServer_kubectlWatch reads tables of a watch.
func TestServer_kubectlWatch(t *testing.T) {
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("kubectl is not installed")
	}
	s := start(t, apiserver.Options{DisableControllers: true})
	c := clientOf(t, s.RESTConfig()).CoreV1().ConfigMaps("default")
	create(t, c, "first")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	command := exec.CommandContext(ctx, kubectl, "get", "configmaps", "--watch", "--no-headers")
	command.Env = append(os.Environ(), "KUBECONFIG="+s.KubeconfigPath(), "HOME="+t.TempDir())
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cancel()
		_ = command.Wait() // it was killed
	}()
	lines := linesOf(out)
	if line := <-lines; !strings.HasPrefix(line, "first ") {
		t.Errorf("first line: %q", line)
	}
	create(t, c, "second")
	if line := <-lines; !strings.HasPrefix(line, "second ") {
		t.Errorf("second line: %q", line)
	}
}
