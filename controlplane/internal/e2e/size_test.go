// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	residentLimitMiB = 600
	observedFor      = 3 * time.Second
	observedEvery    = 100 * time.Millisecond
)

// When the ready line is printed, the control plane is fully ready, with limited memory. Not parallel: the figures are
// for an idle machine.
func TestReadySmallAndQuiet(t *testing.T) {
	p := start(t)
	body, err := p.client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(t.Context()).Raw()
	if err != nil || string(body) != "ok" {
		t.Errorf("/readyz = %q, %v, want ok", body, err)
	}
	if _, err := p.client.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
		t.Errorf("namespace default: %v", err)
	}
	node, err := p.client.CoreV1().Nodes().Get(t.Context(), "trueup", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if ready := node.Status.Conditions[0]; ready.Type != "Ready" || ready.Status != "True" {
		t.Errorf("node's first condition = %+v, want it Ready", ready)
	}
	version, err := p.client.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if version.GitVersion != p.KubernetesVersion || !strings.HasPrefix(version.GitVersion, "v1.") {
		t.Errorf("server version = %s, ready line says %s", version.GitVersion, p.KubernetesVersion)
	}
	most := 0
	ticker := time.NewTicker(observedEvery)
	defer ticker.Stop()
	for begin := time.Now(); time.Since(begin) < observedFor; <-ticker.C {
		most = max(most, residentMiB(t, p.PID))
	}
	if most > residentLimitMiB {
		t.Errorf("resident memory = %d MiB, want at most %d", most, residentLimitMiB)
	}
	t.Logf(
		"ready after %s, at most %d MiB resident in the %s after that", p.took.Round(time.Millisecond), most, observedFor,
	)
	if got := p.stderr.String(); got != "" {
		t.Errorf("stderr = %q, want no output", got)
	}
}
