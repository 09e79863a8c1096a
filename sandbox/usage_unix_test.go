// SPDX-License-Identifier: Apache-2.0

//go:build unix

package sandbox

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// TestWhoElseActsOnMyObjects checks the warnings for two test binaries of which one watches all namespaces.
func TestWhoElseActsOnMyObjects(t *testing.T) {
	shareAlone(t)
	binary := filepath.Join(t.TempDir(), "neighbors") // other tests of this process use another control plane
	if err := os.Symlink(os.Getenv(BinaryVariable), binary); err != nil {
		t.Fatal(err)
	}
	t.Setenv(BinaryVariable, binary)
	sharers, ready := startSharers(t, 1)
	o := TestOptions{Options: Options{
		Binary: binary, Controllers: []string{"none"}, DisablePods: true, Progress: io.Discard,
	}}
	t.Cleanup(func() { _ = syscall.Kill(ready.PID, syscall.SIGTERM) })
	watcher := &recorder{TB: t, name: "TestWatcher"}
	victim := &recorder{TB: t, name: "TestVictim"}
	victim.run(func(r testing.TB) {
		e := ForTest(r, o)
		if err := sharers[0].install(t, neighborLine); err != "" {
			t.Fatal(err)
		}
		client := corev1client.NewForConfigOrDie(e.RESTConfig())
		if _, err := client.ConfigMaps(e.Namespace).List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Error(err)
		}
		watcher.run(func(r testing.TB) {
			client := corev1client.NewForConfigOrDie(ForTest(r, o).RESTConfig())
			w, err := client.Secrets(metav1.NamespaceAll).Watch(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			w.Stop()
			r.Error("it fails")
		})
		r.Error("it fails")
	})
	self := " of " + clientName()
	for _, c := range []struct {
		r    *recorder
		want []string
	}{
		{watcher, []string{
			"this test watches secrets in all namespaces, and shares the control plane with TestVictim" + self +
				", TestNeighbor of trueup.dev/sandbox (process ",
			"another one watched configmaps in all namespaces of the control plane that both share: TestNeighbor",
		}},
		{victim, []string{
			"another one watched configmaps in all namespaces of the control plane that both share: TestNeighbor",
			"another one watched secrets in all namespaces of the control plane that both share: TestWatcher" + self,
		}},
	} {
		log := strings.Join(c.r.logs, "\n")
		for _, want := range c.want {
			if !strings.Contains(log, want) {
				t.Errorf("the log of %s does not contain %q:\n%s", c.r.name, want, log)
			}
		}
		if len(c.r.logs) != len(c.want) {
			t.Errorf("the log of %s has %d messages, want %d:\n%s", c.r.name, len(c.r.logs), len(c.want), log)
		}
	}
}
