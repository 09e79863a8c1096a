// SPDX-License-Identifier: Apache-2.0

package podrunner

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PhaseAnnotation on a pod selects its outcome, see the package's documentation.
const PhaseAnnotation = "trueup.dev/pod-phase"

// CPUAnnotation and MemoryAnnotation on a pod are the quantities that it uses. Horizontal pod autoscalers act on them.
const (
	CPUAnnotation    = "trueup.dev/pod-cpu"
	MemoryAnnotation = "trueup.dev/pod-memory"
)

// fate is the outcome of a pod's containers.
type fate string

const (
	fatePending   fate = "Pending"
	fateRunning   fate = "Running"
	fateNotReady  fate = "NotReady"
	fateSucceeded fate = "Succeeded"
	fateFailed    fate = "Failed"
	fateInvalid   fate = "Invalid"
	fateKilled    fate = "Killed"
)

const (
	exitFailed = 1
	exitKilled = 128 + 15
)

// requestedFate returns the outcome in the annotation, or the default outcome of the pod.
func requestedFate(pod *corev1.Pod) fate {
	value, ok := pod.Annotations[PhaseAnnotation]
	if !ok {
		if pod.Spec.RestartPolicy == corev1.RestartPolicyAlways {
			return fateRunning
		}
		return fateSucceeded
	}
	known := []fate{fatePending, fateRunning, fateNotReady, fateSucceeded, fateFailed}
	if slices.Contains(known, fate(value)) {
		return fate(value)
	}
	return fateInvalid
}

func terminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// statusFor returns the status of a bound pod whose containers have the given fate. If nothing changes, the result
// equals the pod's own status, including times.
func statusFor(pod *corev1.Pod, f fate, podIP string, now metav1.Time) corev1.PodStatus {
	status := *pod.Status.DeepCopy()
	status.ObservedGeneration = pod.Generation
	if status.StartTime == nil {
		status.StartTime = &now
	}
	status.HostIP, status.HostIPs = nodeIP, []corev1.HostIP{{IP: nodeIP}}
	status.PodIP, status.PodIPs = podIP, []corev1.PodIP{{IP: podIP}}

	restarts := pod.Spec.RestartPolicy == corev1.RestartPolicyAlways
	started := f != fatePending && f != fateInvalid
	if status.Phase == corev1.PodRunning && f == fatePending {
		f, started = fateNotReady, true // containers that run never return to Pending
	}
	switch {
	case !started:
		status.Phase = corev1.PodPending
	case f == fateFailed && !restarts, f == fateKilled:
		status.Phase = corev1.PodFailed
	case f == fateSucceeded && !restarts:
		status.Phase = corev1.PodSucceeded
	default:
		status.Phase = corev1.PodRunning
	}

	c := containerMaker{pod: pod, fate: f, restarts: restarts, now: now}
	status.InitContainerStatuses = c.all(pod.Spec.InitContainers, pod.Status.InitContainerStatuses, true)
	status.ContainerStatuses = c.all(pod.Spec.Containers, pod.Status.ContainerStatuses, false)

	containersReady := f == fateRunning
	ready := containersReady && readinessGatesOpen(pod)
	reason := ""
	if status.Phase == corev1.PodSucceeded || status.Phase == corev1.PodFailed {
		reason = "PodCompleted"
	} else if !containersReady {
		reason = "ContainersNotReady"
	}
	setCondition(&status, corev1.PodReadyToStartContainers, status.Phase == corev1.PodRunning || !started, "", now)
	setCondition(&status, corev1.PodInitialized, started, "", now)
	setCondition(&status, corev1.ContainersReady, containersReady, reason, now)
	if containersReady && !ready {
		reason = "ReadinessGatesNotReady"
	}
	setCondition(&status, corev1.PodReady, ready, reason, now)
	return status
}

func readinessGatesOpen(pod *corev1.Pod) bool {
	for _, gate := range pod.Spec.ReadinessGates {
		if !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == gate.ConditionType && c.Status == corev1.ConditionTrue
		}) {
			return false
		}
	}
	return true
}

func setCondition(status *corev1.PodStatus, kind corev1.PodConditionType, isTrue bool, reason string, now metav1.Time) {
	value := corev1.ConditionFalse
	if isTrue {
		value = corev1.ConditionTrue
	}
	condition := corev1.PodCondition{
		Type: kind, Status: value, Reason: reason, LastTransitionTime: now, ObservedGeneration: status.ObservedGeneration,
	}
	i := slices.IndexFunc(status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
	if i < 0 {
		status.Conditions = append(status.Conditions, condition)
		return
	}
	if status.Conditions[i].Status == value {
		condition.LastTransitionTime = status.Conditions[i].LastTransitionTime
	}
	status.Conditions[i] = condition
}

// containerMaker creates the statuses of one pod's containers.
type containerMaker struct {
	pod      *corev1.Pod
	fate     fate
	restarts bool
	now      metav1.Time
}

func (m containerMaker) all(
	containers []corev1.Container, before []corev1.ContainerStatus, init bool,
) []corev1.ContainerStatus {
	var statuses []corev1.ContainerStatus
	for i := range containers {
		container := &containers[i]
		var previous corev1.ContainerState
		if j := slices.IndexFunc(before, func(s corev1.ContainerStatus) bool { return s.Name == container.Name }); j >= 0 {
			previous = before[j].State
		}
		sidecar := container.RestartPolicy != nil && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways
		statuses = append(statuses, m.one(container, previous, init && !sidecar))
	}
	return statuses
}

// one returns the status of a container. once is set for init containers, which have ended when others run.
func (m containerMaker) one(
	container *corev1.Container, previous corev1.ContainerState, once bool,
) corev1.ContainerStatus {
	status := corev1.ContainerStatus{
		Name: container.Name, Image: container.Image, ImageID: container.Image,
		ContainerID: fmt.Sprintf("trueup://%s/%s", m.pod.UID, container.Name),
	}
	startedAt := m.now
	switch {
	case previous.Running != nil:
		startedAt = previous.Running.StartedAt
	case previous.Terminated != nil:
		startedAt = previous.Terminated.StartedAt
	}
	exited := func(code int32, reason string) *corev1.ContainerStateTerminated {
		if previous.Terminated != nil {
			return previous.Terminated
		}
		return &corev1.ContainerStateTerminated{
			ExitCode: code, Reason: reason, StartedAt: startedAt, FinishedAt: m.now, ContainerID: status.ContainerID,
		}
	}
	end := func(code int32, reason string) {
		status.Started = new(false)
		status.State.Terminated = exited(code, reason)
	}
	crashLoop := func(code int32, reason string) {
		status.RestartCount = 1
		status.Started = new(false)
		status.State.Waiting = &corev1.ContainerStateWaiting{
			Reason: "CrashLoopBackOff", Message: fmt.Sprintf("%s=%s", PhaseAnnotation, m.fate),
		}
		// The times of an existing last state must stay, or each sync would change the status.
		status.LastTerminationState.Terminated = m.lastTermination(container.Name)
		if status.LastTerminationState.Terminated == nil {
			status.LastTerminationState.Terminated = exited(code, reason)
		}
	}
	switch {
	case m.fate == fatePending || m.fate == fateInvalid:
		status.ContainerID, status.ImageID = "", ""
		status.Started = new(false)
		status.State.Waiting = m.waiting()
	case once:
		status.Ready = true
		end(0, "Completed")
	case m.fate == fateKilled:
		end(exitKilled, "Error")
	case m.fate == fateSucceeded && m.restarts:
		crashLoop(0, "Completed")
	case m.fate == fateFailed && m.restarts:
		crashLoop(exitFailed, "Error")
	case m.fate == fateSucceeded:
		end(0, "Completed")
	case m.fate == fateFailed:
		end(exitFailed, "Error")
	default:
		status.Ready = m.fate == fateRunning
		status.Started = new(true)
		status.State.Running = &corev1.ContainerStateRunning{StartedAt: startedAt}
	}
	return status
}

func (m containerMaker) lastTermination(name string) *corev1.ContainerStateTerminated {
	for _, status := range slices.Concat(m.pod.Status.ContainerStatuses, m.pod.Status.InitContainerStatuses) {
		if status.Name == name {
			return status.LastTerminationState.Terminated
		}
	}
	return nil
}

func (m containerMaker) waiting() *corev1.ContainerStateWaiting {
	if m.fate == fateInvalid {
		values := []string{
			string(fatePending),
			string(fateRunning),
			string(fateNotReady),
			string(fateSucceeded),
			string(fateFailed),
		}
		return &corev1.ContainerStateWaiting{
			Reason: "InvalidAnnotation",
			Message: fmt.Sprintf("annotation %s=%q: must be one of %s", PhaseAnnotation, m.pod.Annotations[PhaseAnnotation],
				strings.Join(values, ", ")),
		}
	}
	return &corev1.ContainerStateWaiting{
		Reason:  "ContainerCreating",
		Message: fmt.Sprintf("%s=%s", PhaseAnnotation, m.fate),
	}
}
