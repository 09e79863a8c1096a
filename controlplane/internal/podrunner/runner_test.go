// SPDX-License-Identifier: Apache-2.0

package podrunner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func fakeUID(i int) types.UID { return types.UID(strconv.Itoa(i)) }

// run starts a runner on a fake API with the pods, and returns the client. The fake does not bind, so pods that must
// run are already bound.
func run(t *testing.T, pods ...*corev1.Pod) *fake.Clientset {
	t.Helper()
	var objects []runtime.Object
	for i, p := range pods {
		p.Name = fmt.Sprintf("pod-%d", i)
		p.UID = fakeUID(i)
		objects = append(objects, p)
	}
	return runObjects(t, objects...)
}

func runObjects(t *testing.T, objects ...runtime.Object) *fake.Clientset {
	t.Helper()
	client := fake.NewClientset(objects...)
	runner, err := New(client, "v1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() { runner.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		group.Wait()
	})
	select {
	case <-runner.Ready():
	case <-time.After(10 * time.Second):
		t.Fatal("not ready after 10s")
	}
	return client
}

func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for begin := time.Now(); ; <-ticker.C {
		err := check()
		if err == nil {
			return
		}
		if time.Since(begin) > 10*time.Second {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

func bound(p *corev1.Pod) {
	p.Spec.NodeName = NodeName
	p.Spec.SchedulerName = corev1.DefaultSchedulerName
}

func unbound(p *corev1.Pod) { p.Spec.SchedulerName = corev1.DefaultSchedulerName }

func TestRunnerMakesANode(t *testing.T) {
	client := run(t)
	node, err := client.CoreV1().Nodes().Get(t.Context(), NodeName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !nodeReady(node) || node.Status.NodeInfo.KubeletVersion != "v1.2.3" {
		t.Errorf("status = %+v, want Ready and version v1.2.3", node.Status)
	}
}

// bindings returns the names of the pods that were bound.
func bindings(client *fake.Clientset) (names []string) {
	for _, action := range client.Actions() {
		if create, ok := action.(clienttesting.CreateAction); ok && action.GetSubresource() == "binding" {
			names = append(names, create.GetObject().(*corev1.Binding).Name)
		}
	}
	return names
}

func TestRunnerBindsNoPodsToACordonedNode(t *testing.T) {
	waiting, tolerant := pod(corev1.RestartPolicyAlways, unbound), pod(corev1.RestartPolicyAlways, unbound)
	waiting.Name, tolerant.Name = "waiting", "tolerant"
	waiting.UID, tolerant.UID = fakeUID(1), fakeUID(2)
	tolerant.Spec.Tolerations = []corev1.Toleration{
		{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: NodeName}, Spec: corev1.NodeSpec{Unschedulable: true},
	}
	client := runObjects(t, node, waiting, tolerant)
	eventually(t, "pod reported unschedulable", func() error {
		got, err := client.CoreV1().Pods("ns").Get(t.Context(), "waiting", metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range got.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == "Unschedulable" {
				return nil
			}
		}
		return fmt.Errorf("conditions %+v", got.Status.Conditions)
	})
	eventually(t, "tolerant pod bound", func() error {
		if got := bindings(client); len(got) != 1 || got[0] != "tolerant" {
			return fmt.Errorf("bindings %v, want only that of the pod that tolerates it", got)
		}
		return nil
	})
	live, err := client.CoreV1().Nodes().Get(t.Context(), NodeName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	live.Spec.Unschedulable = false
	if _, err := client.CoreV1().Nodes().Update(t.Context(), live, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "pod bound after uncordon", func() error {
		if got := bindings(client); !slices.Contains(got, "waiting") {
			return fmt.Errorf("bindings %v", got)
		}
		return nil
	})
}

func TestRunnerBindsItsPods(t *testing.T) {
	gated := func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "gate"}} }
	foreign := func(p *corev1.Pod) { p.Spec.SchedulerName = "other" }
	const always = corev1.RestartPolicyAlways
	client := run(t, pod(always, unbound, gated), pod(always, foreign), pod(always, unbound))
	eventually(t, "pod-2 bound", func() error {
		if got := bindings(client); len(got) == 0 {
			return errors.New("no binding")
		}
		return nil
	})
	for _, name := range bindings(client) {
		if name != "pod-2" {
			t.Errorf("%s was bound", name)
		}
	}
}

func TestRunnerMovesPodsThroughTheirPhases(t *testing.T) {
	elsewhere := func(p *corev1.Pod) { p.Spec.NodeName = "elsewhere" }
	const always, never = corev1.RestartPolicyAlways, corev1.RestartPolicyNever
	client := run(t, pod(always, bound), pod(never, bound), pod(never, bound, annotated("Failed")), pod(always, elsewhere))
	for i, want := range []corev1.PodPhase{corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed, corev1.PodPending} {
		name := fmt.Sprintf("pod-%d", i)
		eventually(t, name, func() error {
			got, err := client.CoreV1().Pods("ns").Get(t.Context(), name, metav1.GetOptions{})
			if err == nil && got.Status.Phase != want {
				err = fmt.Errorf("phase = %s, want %s", got.Status.Phase, want)
			}
			return err
		})
	}
	// A task must be observed as running before it ends.
	seen := map[string][]corev1.PodPhase{}
	for _, action := range client.Actions() {
		if update, ok := action.(clienttesting.UpdateAction); ok && action.GetSubresource() == "status" {
			if p, ok := update.GetObject().(*corev1.Pod); ok {
				seen[p.Name] = append(seen[p.Name], p.Status.Phase)
			}
		}
	}
	if got := seen["pod-1"]; len(got) < 2 || got[0] != corev1.PodRunning {
		t.Errorf("phases of a task = %v, want Running first", got)
	}
}

func TestRunnerRemovesDeletedPods(t *testing.T) {
	deleted := func(grace int64) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &begin, &grace
			p.Finalizers = []string{"example.com/hold"} // the fake rejects a terminating pod without finalizers
		}
	}
	const always, never = corev1.RestartPolicyAlways, corev1.RestartPolicyNever
	client := run(t, pod(always, bound, deleted(30)), pod(never, bound, deleted(30)), pod(always, bound, deleted(0)))
	deletions := func() map[string]bool {
		names := map[string]bool{}
		for _, action := range client.Actions() {
			if d, ok := action.(clienttesting.DeleteActionImpl); ok {
				grace := d.DeleteOptions.GracePeriodSeconds
				names[d.Name] = grace != nil && *grace == 0
			}
		}
		return names
	}
	eventually(t, "deleted immediately", func() error {
		got := deletions()
		if !got["pod-0"] || !got["pod-1"] {
			return fmt.Errorf("deletions without grace = %v, want pod-0 and pod-1", got)
		}
		return nil
	})
	if _, ok := deletions()["pod-2"]; ok {
		t.Error("pod-2 was deleted again, want it to wait for its finalizers")
	}
	for _, action := range client.Actions() {
		if update, ok := action.(clienttesting.UpdateAction); ok && action.GetSubresource() == "status" {
			if p, ok := update.GetObject().(*corev1.Pod); ok && (p.Name != "pod-1" || p.Status.Phase != corev1.PodFailed) {
				t.Errorf("%s was reported %s, want only pod-1 Failed", p.Name, p.Status.Phase)
			}
		}
	}
}
