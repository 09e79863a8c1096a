// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/observe"
)

// converge describes a reconcile that starts some seconds after start.
type converge struct {
	after         time.Duration
	before, event *unstructured.Unstructured // of a cause at this time
	written       *unstructured.Unstructured
	halted, waits bool
	result        reconcile.Result
	err           error
}

func (c converge) events() []observe.Event {
	cause := observe.Cause{Type: observe.CauseObject, Verb: observe.Updated, At: start.Add(c.after)}
	switch {
	case c.before == nil && c.event == nil:
		cause = observe.Cause{Type: observe.CauseRequeue}
	case c.before == nil:
		cause.Verb = observe.Created
		cause.SetObjects(nil, c.event)
	case c.event == nil:
		cause.Verb = observe.Deleted
		cause.SetObjects(c.before, nil)
	default:
		cause.SetObjects(c.before, c.event)
	}
	run := newRun("a", cause)
	run.Started = start.Add(c.after)
	events := []observe.Event{&observe.ReconcileStarted{Run: run}}
	if c.halted {
		events = append(events, &observe.StepFinished{Run: run, Path: []string{"Website"}, Outcome: observe.Halted})
	}
	if c.waits {
		events = append(events, &observe.StaleWait{Run: run})
	}
	if c.written != nil {
		call := &observe.Call{Run: run, Verb: observe.VerbUpdate, Kind: website, Object: run.Object, Subresource: "status"}
		call.SetObjects(nil, c.written)
		events = append(events, call)
	}
	return append(events, &observe.ReconcileFinished{
		Run: run, Result: c.result, Err: c.err, Duration: 500 * time.Millisecond,
	})
}

func TestHowLongUntilReady(t *testing.T) {
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	at := func(generation, observed int64, ready metav1.ConditionStatus) *unstructured.Unstructured {
		return object("a", generation, observed, ready)
	}
	deleting := at(2, 1, no)
	deleting.SetDeletionTimestamp(&metav1.Time{Time: start})
	const duration, waiting = "trueup_converge_duration_seconds", "trueup_converging_objects"
	const labels = "{controller=website,kind=Website.example.dev} "
	minute := reconcile.Result{RequeueAfter: time.Minute}
	cases := map[string]struct {
		runs []converge
		want []string
	}{
		"ready at once": {
			runs: []converge{{event: at(1, 0, ""), written: at(1, 1, yes)}},
			want: []string{duration + labels + "1/0.5"},
		},
		"ready by a later reconcile": {
			runs: []converge{
				{event: at(1, 0, ""), written: at(1, 1, no)},
				{after: 5 * time.Second, before: at(1, 0, ""), event: at(1, 1, no)},
				{after: 9 * time.Second, written: at(1, 1, yes), result: minute},
			},
			want: []string{duration + labels + "1/9.5"},
		},
		"ready by another client": {
			runs: []converge{
				{event: at(1, 0, "")},
				{after: 5 * time.Second, before: at(1, 1, yes), event: at(2, 1, yes), err: errTest},
				{after: 7 * time.Second, before: at(2, 1, yes), event: at(2, 2, yes)},
			},
			want: []string{duration + labels + "2/3"},
		},
		"not ready": {
			runs: []converge{{event: at(1, 0, ""), written: at(1, 1, no)}},
			want: []string{waiting + labels + "1"},
		},
		"ready is of an older generation": {
			runs: []converge{{before: at(1, 1, yes), event: at(2, 1, yes)}},
			want: []string{waiting + labels + "1"},
		},
		"a kind without observed generation": {
			runs: []converge{{before: at(1, 0, yes), event: at(2, 0, yes)}},
			want: []string{duration + labels + "1/0.5"},
		},
		"waits for the caches": {
			runs: []converge{{before: at(1, 0, yes), event: at(2, 0, yes), waits: true}},
			want: []string{waiting + labels + "1"},
		},
		"fails": {
			runs: []converge{{event: at(1, 0, ""), written: at(1, 1, yes), err: errTest}},
			want: []string{waiting + labels + "1"},
		},
		"a kind without conditions: requeue, halt, success": {
			runs: []converge{
				{event: at(1, 0, ""), result: minute},
				{after: time.Second, halted: true},
				{after: 2 * time.Second},
			},
			want: []string{duration + labels + "1/2.5"},
		},
		"a kind without conditions: halted": {
			runs: []converge{{event: at(1, 0, ""), halted: true}},
			want: []string{waiting + labels + "1"},
		},
		"the latest of two changes": {
			runs: []converge{
				{before: at(1, 1, yes), event: at(2, 1, yes), err: errTest},
				{after: 10 * time.Second, before: at(2, 1, yes), event: at(3, 1, yes), written: at(3, 3, yes)},
			},
			want: []string{duration + labels + "1/0.5"},
		},
		"nothing changed": {runs: []converge{{before: at(1, 1, yes), event: at(1, 1, yes)}, {}}},
		"deleted":         {runs: []converge{{event: at(1, 0, ""), err: errTest}, {before: at(1, 0, "")}}},
		"being deleted": {
			runs: []converge{
				{event: at(1, 0, ""), err: errTest},
				{before: at(1, 1, no), event: deleting, written: at(2, 2, yes)},
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			series := recorded(t, func(l observe.Listener) {
				for _, run := range c.runs {
					send(l, run.events()...)
				}
			})
			got := append(only(series, duration), only(series, waiting)...)
			got = append([]string{}, got...)
			for i, s := range got {
				if s == duration+labels+"0/0" {
					got = append(got[:i:i], got[i+1:]...)
					break
				}
			}
			if diff := cmp.Diff(c.want, got, cmpEmpty); diff != "" {
				t.Errorf("series (-want +got):\n%s", diff)
			}
		})
	}
}
