// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"

	"trueup.dev/reconcilers"
)

// TestWhichEventsAreRecorded records a Normal event, and Warning events at 0, 30 and 90 seconds, of which the second
// repeats the first.
func TestWhichEventsAreRecorded(t *testing.T) {
	const created, failed = "Normal Created Created Secret", "Warning ReconcileFailed quota"
	for name, tc := range map[string]struct {
		options reconcilers.EventOptions
		want    []string
	}{
		"all, by default": {want: []string{created, failed, failed, failed}},
		"warnings": {
			options: reconcilers.EventOptions{DisableNormal: true}, want: []string{failed, failed, failed},
		},
		"no warnings": {options: reconcilers.EventOptions{DisableWarning: true}, want: []string{created}},
		"none":        {options: reconcilers.EventOptions{DisableNormal: true, DisableWarning: true}},
		"repeats after a minute": {
			options: reconcilers.EventOptions{Interval: time.Minute}, want: []string{created, failed, failed},
		},
		"repeats after an hour": {
			options: reconcilers.EventOptions{Interval: time.Hour}, want: []string{created, failed},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			config := configFor(w, newManager(t, w, newEventCache(w.Scheme)))
			recorded := record.NewFakeRecorder(10)
			config.Recorder, config.Events = recorded, tc.options
			synctest.Test(t, func(*testing.T) {
				warn := func() { config.RecordEvent(newResource(), corev1.EventTypeWarning, "ReconcileFailed", "%s", "quota") }
				config.RecordEvent(newResource(), corev1.EventTypeNormal, "Created", "Created %s", "Secret")
				warn()
				time.Sleep(30 * time.Second)
				warn()
				time.Sleep(time.Minute)
				warn()
			})
			close(recorded.Events)
			var got []string
			for event := range recorded.Events {
				got = append(got, event)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRepeatsOfDifferentEvents tests that an interval does not drop events of other objects, or with other texts.
func TestRepeatsOfDifferentEvents(t *testing.T) {
	w := newWorld(t)
	config := configFor(w, newManager(t, w, newEventCache(w.Scheme)))
	recorded := record.NewFakeRecorder(10)
	config.Recorder, config.Events.Interval = recorded, time.Hour
	another := newResource()
	another.Name = "another"
	for range 2 {
		config.RecordEvent(newResource(), corev1.EventTypeWarning, "ReconcileFailed", "quota")
		config.RecordEvent(newResource(), corev1.EventTypeWarning, "ReconcileFailed", "no route")
		config.RecordEvent(another, corev1.EventTypeWarning, "ReconcileFailed", "quota")
	}
	if got := len(recorded.Events); got != 3 {
		t.Errorf("got %d events, want 3", got)
	}
}

// TestEventsWithoutARecorder tests that a config without a recorder drops events.
func TestEventsWithoutARecorder(*testing.T) {
	reconcilers.Config{}.RecordEvent(newResource(), corev1.EventTypeWarning, "ReconcileFailed", "quota")
}
