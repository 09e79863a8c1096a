// SPDX-License-Identifier: Apache-2.0

package podrunner

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	begin = metav1.NewTime(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))
	later = metav1.NewTime(begin.Add(time.Minute))
)

func pod(policy corev1.RestartPolicy, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod", UID: "uid", Generation: 3},
		Spec: corev1.PodSpec{
			RestartPolicy:  policy,
			InitContainers: []corev1.Container{{Name: "init", Image: "i"}},
			Containers:     []corev1.Container{{Name: "main", Image: "m"}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	for _, f := range change {
		f(p)
	}
	return p
}

func annotated(value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations = map[string]string{PhaseAnnotation: value} }
}

func TestRequestedFate(t *testing.T) {
	cases := []struct {
		reason string
		pod    *corev1.Pod
		want   fate
	}{
		{"a server runs", pod(corev1.RestartPolicyAlways), fateRunning},
		{"a task ends", pod(corev1.RestartPolicyNever), fateSucceeded},
		{"a task that may be retried ends", pod(corev1.RestartPolicyOnFailure), fateSucceeded},
		{"the annotation wins", pod(corev1.RestartPolicyNever, annotated("Running")), fateRunning},
		{"Pending", pod(corev1.RestartPolicyAlways, annotated("Pending")), fatePending},
		{"NotReady", pod(corev1.RestartPolicyAlways, annotated("NotReady")), fateNotReady},
		{"Succeeded", pod(corev1.RestartPolicyAlways, annotated("Succeeded")), fateSucceeded},
		{"Failed", pod(corev1.RestartPolicyAlways, annotated("Failed")), fateFailed},
		{"case matters, as in phases", pod(corev1.RestartPolicyAlways, annotated("failed")), fateInvalid},
		{"an internal fate cannot be selected", pod(corev1.RestartPolicyAlways, annotated("Killed")), fateInvalid},
	}
	for _, c := range cases {
		if got := requestedFate(c.pod); got != c.want {
			t.Errorf("%s: fate = %s, want %s", c.reason, got, c.want)
		}
	}
}

// summary formats a status as one line.
func summary(s corev1.PodStatus) string {
	var conditions, containers []string
	for _, c := range s.Conditions {
		if c.Status == corev1.ConditionTrue {
			conditions = append(conditions, string(c.Type))
		}
	}
	for _, c := range append(s.InitContainerStatuses, s.ContainerStatuses...) {
		state := "none"
		switch {
		case c.State.Running != nil:
			state = "running"
		case c.State.Waiting != nil:
			state = c.State.Waiting.Reason
		case c.State.Terminated != nil:
			state = fmt.Sprintf("exit %d", c.State.Terminated.ExitCode)
		}
		if c.Ready {
			state += " ready"
		}
		containers = append(containers, c.Name+" "+state)
	}
	return fmt.Sprintf("%s [%s] %s", s.Phase, strings.Join(conditions, " "), strings.Join(containers, ", "))
}

func TestStatusFor(t *testing.T) {
	gated := func(p *corev1.Pod) {
		p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/gate"}}
	}
	gateOpen := func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: "example.com/gate", Status: corev1.ConditionTrue}}
	}
	running := func(p *corev1.Pod) { p.Status = statusFor(p, fateRunning, "198.19.0.1", begin) }
	sidecar := func(p *corev1.Pod) {
		p.Spec.InitContainers[0].RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	}
	const always, never = corev1.RestartPolicyAlways, corev1.RestartPolicyNever
	cases := []struct {
		reason string
		pod    *corev1.Pod
		fate   fate
		want   string
	}{
		{
			"a server runs and is ready", pod(always), fateRunning,
			"Running [PodReadyToStartContainers Initialized ContainersReady Ready] init exit 0 ready, main running ready",
		},
		{
			"a sidecar keeps running beside it", pod(always, sidecar), fateRunning,
			"Running [PodReadyToStartContainers Initialized ContainersReady Ready] init running ready, main running ready",
		},
		{
			"a closed readiness gate keeps the pod from being ready", pod(always, gated), fateRunning,
			"Running [PodReadyToStartContainers Initialized ContainersReady] init exit 0 ready, main running ready",
		},
		{
			"an open readiness gate does not keep the pod from being ready",
			pod(always, gated, gateOpen),
			fateRunning,
			"Running [example.com/gate PodReadyToStartContainers Initialized ContainersReady Ready] " +
				"init exit 0 ready, main running ready",
		},
		{
			"Pending: nothing starts", pod(always), fatePending,
			"Pending [PodReadyToStartContainers] init ContainerCreating, main ContainerCreating",
		},
		{
			"Pending: a running container stays running", pod(always, running), fatePending,
			"Running [PodReadyToStartContainers Initialized] init exit 0 ready, main running",
		},
		{
			"NotReady", pod(always, running), fateNotReady,
			"Running [PodReadyToStartContainers Initialized] init exit 0 ready, main running",
		},
		{
			"an unknown annotation is shown in the status", pod(always, annotated("x")), fateInvalid,
			"Pending [PodReadyToStartContainers] init InvalidAnnotation, main InvalidAnnotation",
		},
		{
			"a task succeeds", pod(never, running), fateSucceeded,
			"Succeeded [Initialized] init exit 0 ready, main exit 0",
		},
		{
			"a task succeeds with its sidecar", pod(never, sidecar, running), fateSucceeded,
			"Succeeded [Initialized] init exit 0, main exit 0",
		},
		{
			"a task fails", pod(never, running), fateFailed,
			"Failed [Initialized] init exit 0 ready, main exit 1",
		},
		{
			"a failing server is restarted, because a failed pod would be replaced again and again",
			pod(always, running),
			fateFailed,
			"Running [PodReadyToStartContainers Initialized] init exit 0 ready, main CrashLoopBackOff",
		},
		{
			"a server that ends is restarted", pod(always, running), fateSucceeded,
			"Running [PodReadyToStartContainers Initialized] init exit 0 ready, main CrashLoopBackOff",
		},
		{
			"a task that is deleted fails", pod(never, running), fateKilled,
			"Failed [Initialized] init exit 0 ready, main exit 143",
		},
	}
	for _, c := range cases {
		t.Run(c.reason, func(t *testing.T) {
			status := statusFor(c.pod, c.fate, "198.19.0.1", later)
			if diff := cmp.Diff(c.want, summary(status)); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
			if status.PodIP != "198.19.0.1" || status.HostIP != nodeIP || status.StartTime == nil ||
				status.ObservedGeneration != 3 {
				t.Errorf(
					"ip %s on %s, started %v, generation %d", status.PodIP, status.HostIP, status.StartTime, status.ObservedGeneration,
				)
			}
			// The second status must be equal, or the runner would write endlessly.
			c.pod.Status = status
			again := statusFor(c.pod, c.fate, "198.19.0.1", metav1.NewTime(later.Add(time.Hour)))
			if !apiequality.Semantic.DeepEqual(status, again) {
				t.Errorf("second status (-first +second):\n%s", cmp.Diff(status, again))
			}
		})
	}
}

func TestReadyConditionKeepsItsTime(t *testing.T) {
	p := pod(corev1.RestartPolicyAlways)
	p.Status = statusFor(p, fateRunning, "198.19.0.1", begin)
	transition := func() metav1.Time {
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodReady {
				return c.LastTransitionTime
			}
		}
		t.Fatal("no condition Ready")
		return metav1.Time{}
	}
	p.Status = statusFor(p, fateRunning, "198.19.0.1", later)
	if got := transition(); !got.Equal(&begin) {
		t.Errorf("still ready: time = %s, want %s", got, begin)
	}
	p.Status = statusFor(p, fateNotReady, "198.19.0.1", later)
	if got := transition(); !got.Equal(&later) {
		t.Errorf("no longer ready: time = %s, want %s", got, later)
	}
}

func TestAddresses(t *testing.T) {
	a := newAddresses()
	a.note("old", "198.19.0.2")
	first, second := a.of("a"), a.of("b")
	if first != "198.19.0.1" || second != "198.19.0.3" {
		t.Errorf("addresses = %s, %s, want 198.19.0.1 and, past the one in use, 198.19.0.3", first, second)
	}
	if again := a.of("a"); again != first {
		t.Errorf("second address for the same pod = %s, want %s", again, first)
	}
	a.release("a")
	for i := range 1<<16 - 3 { // .0.0 is never given, "old" and "b" are in use
		if got := a.of(fakeUID(i)); got == "" {
			t.Fatalf("no address for pod %d", i)
		}
	}
	if got := a.of("one too many"); got != "" {
		t.Errorf("address = %s, want none left", got)
	}
	a.release("old")
	if got := a.of("one too many"); got != "198.19.0.2" {
		t.Errorf("address = %s, want the released 198.19.0.2", got)
	}
}
