// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var started = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

func pod(annotations map[string]string, status corev1.ContainerStatus) *corev1.Pod {
	status.Name = "app"
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Annotations: annotations},
		Status:     corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{status}},
	}
}

func running() corev1.ContainerStatus {
	return corev1.ContainerStatus{State: corev1.ContainerState{
		Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(started)},
	}}
}

func TestLogs(t *testing.T) {
	three := map[string]string{LogsAnnotation: "one\ntwo\nthree"}
	tests := map[string]struct {
		annotations map[string]string
		query       string
		want        string
	}{
		"annotation": {three, "", "one\ntwo\nthree\n"},
		"of one container": {
			map[string]string{LogsAnnotation: "all", ContainerLogsPrefix + "app": "own"}, "", "own\n",
		},
		"of another container":    {map[string]string{LogsAnnotation: "all", ContainerLogsPrefix + "db": "own"}, "", "all\n"},
		"empty":                   {map[string]string{LogsAnnotation: ""}, "", ""},
		"last lines":              {three, "tailLines=2", "two\nthree\n"},
		"more lines than exist":   {three, "tailLines=9", "one\ntwo\nthree\n"},
		"no lines":                {three, "tailLines=0", ""},
		"limited":                 {three, "limitBytes=6", "one\ntw"},
		"limited at an end":       {three, "limitBytes=4", "one\n"},
		"with times":              {three, "tailLines=1&timestamps=true", "2030-01-02T03:04:05Z three\n"},
		"options that do not act": {three, "sinceSeconds=1&stream=All", "one\ntwo\nthree\n"},
		"default": {nil, "", "trueup: container app of pod shop/web is simulated: nothing is executed; the annotation " +
			"trueup.dev/pod-logs of the pod sets this log\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			query, err := url.ParseQuery(test.query)
			if err != nil {
				t.Fatal(err)
			}
			options, err := parseLogOptions(query)
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			p := logPrinter{out: &out, options: options, container: "app"}
			p.print(pod(test.annotations, running()))
			if diff := cmp.Diff(test.want, out.String()); diff != "" {
				t.Errorf("log (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFollowedLogContinues(t *testing.T) {
	var out strings.Builder
	p := logPrinter{out: &out, options: logOptions{follow: true, tailLines: 1, limitBytes: -1}, container: "app"}
	for _, text := range []string{"one\ntwo", "one\ntwo", "one\ntwo\nthree\nfour", "new"} {
		p.print(pod(map[string]string{LogsAnnotation: text}, running()))
	}
	if want := "two\nthree\nfour\nnew\n"; out.String() != want {
		t.Errorf("log = %q, want %q", out.String(), want)
	}
}

func TestLogsThatAreNotAvailable(t *testing.T) {
	waiting := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}
	terminated := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	tests := map[string]struct {
		container string
		status    corev1.ContainerStatus
		previous  bool
		want      string
	}{
		"running": {"app", running(), false, ""},
		"waiting": {
			"app",
			corev1.ContainerStatus{State: waiting},
			false,
			`container "app" in pod "web" is waiting to start: ContainerCreating`,
		},
		"crashing":  {"app", corev1.ContainerStatus{State: waiting, LastTerminationState: terminated}, false, ""},
		"restarted": {"app", corev1.ContainerStatus{State: waiting, LastTerminationState: terminated}, true, ""},
		"no restart": {
			"app", running(), true, `previous terminated container "app" in pod "web" not found`,
		},
		"not known": {"db", running(), false, `container "db" in pod "web" is waiting to start: pod is Pending`},
	}
	for name, test := range tests {
		got := ""
		if err := (logOptions{previous: test.previous}).available(pod(nil, test.status), test.container); err != nil {
			got = err.Error()
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: error (-want +got):\n%s", name, diff)
		}
	}
}

func TestWrongLogOptions(t *testing.T) {
	_, err := parseLogOptions(url.Values{"tailLines": {"-1"}, "limitBytes": {"many"}})
	want := "tailLines must be a number that is not negative, got \"-1\"\n" +
		"limitBytes must be a number that is not negative, got \"many\""
	if err == nil || err.Error() != want {
		t.Errorf("error = %v, want %s", err, want)
	}
}
