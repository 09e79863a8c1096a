// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// LogsAnnotation is the annotation of a pod with the log of all its containers.
	LogsAnnotation = "trueup.dev/pod-logs"

	// ContainerLogsPrefix and the name of a container are the annotation with the log of this container.
	ContainerLogsPrefix = "logs.trueup.dev/"
)

// logOptions are the parameters of a request for logs. Each line has the time when the container started, so that
// options for times do not select among the lines.
type logOptions struct {
	follow, previous, timestamps bool
	tailLines                    int // -1 for all
	limitBytes                   int // -1 for no limit
}

func parseLogOptions(query url.Values) (logOptions, error) {
	o := logOptions{
		follow: query.Get("follow") == "true", previous: query.Get("previous") == "true",
		timestamps: query.Get("timestamps") == "true",
	}
	var tailErr, limitErr error
	o.tailLines, tailErr = number(query, "tailLines")
	o.limitBytes, limitErr = number(query, "limitBytes")
	return o, errors.Join(tailErr, limitErr)
}

func number(query url.Values, name string) (int, error) {
	if !query.Has(name) {
		return -1, nil
	}
	value, err := strconv.Atoi(query.Get(name))
	if err != nil || value < 0 {
		return 0, fmt.Errorf("%s must be a number that is not negative, got %q", name, query.Get(name))
	}
	return value, nil
}

// available returns an error if the container has not started, or has not been restarted although its previous log is
// requested.
func (o logOptions) available(pod *corev1.Pod, container string) error {
	status := containerStatus(pod, container)
	switch {
	case o.previous && (status == nil || status.LastTerminationState.Terminated == nil):
		return fmt.Errorf("previous terminated container %q in pod %q not found", container, pod.Name)
	case status == nil:
		return fmt.Errorf("container %q in pod %q is waiting to start: pod is %s", container, pod.Name, pod.Status.Phase)
	case status.State.Waiting != nil && status.LastTerminationState.Terminated == nil:
		return fmt.Errorf("container %q in pod %q is waiting to start: %s",
			container, pod.Name, status.State.Waiting.Reason)
	}
	return nil
}

func containerStatus(pod *corev1.Pod, container string) *corev1.ContainerStatus {
	statuses := slices.Concat(
		pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses, pod.Status.EphemeralContainerStatuses,
	)
	for i := range statuses {
		if statuses[i].Name == container {
			return &statuses[i]
		}
	}
	return nil
}

// ended reports whether a container will not write any more.
func ended(pod *corev1.Pod, container string) bool {
	status := containerStatus(pod, container)
	return status == nil || status.State.Terminated != nil || pod.DeletionTimestamp != nil
}

// containerLog returns the log that the pod's annotations contain.
func containerLog(pod *corev1.Pod, container string) string {
	text, ok := pod.Annotations[ContainerLogsPrefix+container]
	if !ok {
		text, ok = pod.Annotations[LogsAnnotation]
	}
	if !ok {
		text = fmt.Sprintf("trueup: container %s of pod %s/%s is simulated: nothing is executed; the annotation %s of the "+
			"pod sets this log", container, pod.Namespace, pod.Name, LogsAnnotation)
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text
}

// logPrinter writes a log, and later what was appended to it.
type logPrinter struct {
	out       io.Writer
	options   logOptions
	container string

	last    string // the whole log that was written, or ""
	started bool
	bytes   int
}

// print writes what is new in the log. It returns false if nothing more can be written.
func (p *logPrinter) print(pod *corev1.Pod) bool {
	text := containerLog(pod, p.container)
	lines := slices.Collect(strings.Lines(text))
	if p.started {
		appended, ok := strings.CutPrefix(text, p.last)
		if !ok {
			appended = text // the log was replaced
		}
		lines = slices.Collect(strings.Lines(appended))
	} else if tail := p.options.tailLines; tail >= 0 && tail < len(lines) {
		lines = lines[len(lines)-tail:]
	}
	p.started, p.last = true, text
	for _, line := range lines {
		if p.options.timestamps {
			line = startTime(pod, p.container).UTC().Format(time.RFC3339Nano) + " " + line
		}
		if limit := p.options.limitBytes; limit >= 0 && p.bytes+len(line) > limit {
			line = line[:limit-p.bytes]
		}
		if _, err := io.WriteString(p.out, line); err != nil {
			return false
		}
		p.bytes += len(line)
	}
	return p.options.limitBytes < 0 || p.bytes < p.options.limitBytes
}

// startTime returns when the container started.
func startTime(pod *corev1.Pod, container string) time.Time {
	status := containerStatus(pod, container)
	switch {
	case status != nil && status.State.Running != nil:
		return status.State.Running.StartedAt.Time
	case status != nil && status.State.Terminated != nil:
		return status.State.Terminated.StartedAt.Time
	case pod.Status.StartTime != nil:
		return pod.Status.StartTime.Time
	}
	return pod.CreationTimestamp.Time
}
