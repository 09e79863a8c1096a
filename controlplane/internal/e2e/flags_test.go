// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Flags of kube-apiserver take effect: admission plugins, a feature gate, an API, the emulated version, the audit log.
func TestFlagsOfTheAPIServer(t *testing.T) {
	t.Parallel()
	audit := filepath.Join(t.TempDir(), "audit log.jsonl")
	p := start(
		t, "--controllers", "none", "--pods=false", "--audit-log", audit, "--emulated-version", "1.36",
		"--apiserver-arg", "enable-admission-plugins=AlwaysPullImages,TaintNodesByCondition",
		"--apiserver-arg", "feature-gates=WatchList=false",
		"--apiserver-arg", "runtime-config=resource.k8s.io/v1=false",
	)
	version, err := p.client.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if version.EmulationMajor != "1" || version.EmulationMinor != "36" {
		t.Errorf("emulated version = %s.%s, want 1.36", version.EmulationMajor, version.EmulationMinor)
	}
	pod, err := p.client.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "app", Image: "app", ImagePullPolicy: corev1.PullNever},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := pod.Spec.Containers[0].ImagePullPolicy; got != corev1.PullAlways {
		t.Errorf("pull policy = %s, want %s by the admission plugin", got, corev1.PullAlways)
	}
	node, err := p.client.CoreV1().Nodes().Create(
		t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker"}}, metav1.CreateOptions{},
	)
	if err != nil {
		t.Fatal(err)
	}
	if len(node.Spec.Taints) == 0 {
		t.Error("node has no taints, want one by the plugin TaintNodesByCondition, which is disabled by default")
	}
	if _, err := p.client.Discovery().ServerResourcesForGroupVersion("resource.k8s.io/v1"); err == nil {
		t.Error("API resource.k8s.io/v1 is served, want it disabled")
	}
	gates, err := p.client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := `kubernetes_feature_enabled{name="WatchList"`; !metricIsZero(string(gates), want) {
		t.Errorf("metrics do not have %s…} with value 0", want)
	}
	assertAudited(t, audit)
}

func metricIsZero(metrics, prefix string) bool {
	for line := range strings.Lines(metrics) {
		if strings.HasPrefix(line, prefix) {
			return strings.HasSuffix(line, " 0\n")
		}
	}
	return false
}

// assertAudited waits for the event of the pod's creation.
func assertAudited(t *testing.T, file string) {
	t.Helper()
	type event struct {
		Stage, Verb   string
		User          struct{ Username string }
		ObjectRef     struct{ Resource, Name string }
		RequestObject json.RawMessage
	}
	eventually(t, waitLimit, "audit event", func(context.Context) error {
		content, err := os.Open(file)
		if err != nil {
			return err
		}
		defer content.Close()
		lines := bufio.NewScanner(content)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var e event
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
				continue // still being written
			}
			if e.Stage == "ResponseComplete" && e.Verb == "create" && e.ObjectRef.Resource == "pods" &&
				e.User.Username == "trueup-admin" && strings.Contains(string(e.RequestObject), `"image":"app"`) {
				return nil
			}
		}
		return errors.Join(errors.New("no event for the creation of the pod"), lines.Err())
	})
}
