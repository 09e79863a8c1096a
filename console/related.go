// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"trueup.dev/observe"
	"trueup.dev/observe/recorder"
)

// Related is another object that the recorded reconciles of an object wrote, read from the API server, did not find in
// a cache, or were caused by.
type Related struct {
	Object recorder.Ref `json:"object"`
	// Relation is Owned, Tracked, Watched or Source if the object caused reconciles, and empty otherwise.
	Relation observe.CauseType `json:"relation,omitempty"`
	// Call is the last call: the last one that wrote, if any did. Step is its step, and Called its time.
	Call   *recorder.Call `json:"call,omitempty"`
	Step   string         `json:"step,omitempty"`
	Called time.Time      `json:"called,omitzero"`
	// Event is the last event that caused a reconcile.
	Event *recorder.Cause `json:"event,omitempty"`
	// Exists reports whether the object exists, and Absent whether it does not, as far as the calls and events show. Both
	// are false if that is unknown.
	Exists bool `json:"exists"`
	Absent bool `json:"absent,omitempty"`
	// Controller is the name of a controller that the recorder has the object of, or empty.
	Controller string `json:"controller,omitempty"`
}

// Failed reports whether the last call failed.
func (r Related) Failed() bool { return r.Call != nil && r.Call.Error != "" }

// relatedTo returns the objects that the runs of an object are about: those whose last call failed first, then by kind
// and name.
func (h *handler) relatedTo(history recorder.History) []Related {
	all := map[recorder.Ref]*Related{}
	of := func(object recorder.Ref) *Related {
		if all[object] == nil {
			all[object] = &Related{Object: object}
		}
		return all[object]
	}
	for _, run := range slices.Backward(history.History) {
		for _, cause := range run.Causes {
			if cause.Object == history.Object.Object || cause.Object.Name == "" {
				continue
			}
			switch cause.Type {
			case observe.CauseOwned, observe.CauseTracked, observe.CauseWatched, observe.CauseSource:
				r := of(cause.Object)
				r.Relation, r.Event = cause.Type, &cause
				r.Exists, r.Absent = cause.Verb != observe.Deleted, cause.Verb == observe.Deleted
			}
		}
		for call, step := range callsOf(run) {
			if call.Object != history.Object.Object && call.Object.Name != "" && !call.DryRun {
				of(call.Object).add(call, step, run.Started)
			}
		}
	}
	related := []Related{}
	_, cluster, _ := strings.Cut(history.Controller, "@")
	for _, r := range all {
		r.Controller = h.recorder.ControllerOf(r.Object, cluster)
		related = append(related, *r)
	}
	slices.SortFunc(related, func(a, b Related) int {
		if a.Failed() != b.Failed() {
			if a.Failed() {
				return -1
			}
			return 1
		}
		return cmp.Or(strings.Compare(a.Object.Kind, b.Object.Kind), strings.Compare(a.Object.Key(), b.Object.Key()))
	})
	return related
}

func (r *Related) add(call recorder.Call, step string, at time.Time) {
	isWrite := call.Verb != observe.VerbGet && call.Verb != observe.VerbList
	switch {
	case call.Error == "":
		r.Exists, r.Absent = call.Verb != observe.VerbDelete, call.Verb == observe.VerbDelete
	case call.Reason == metav1.StatusReasonAlreadyExists:
		r.Exists, r.Absent = true, false
	case call.Reason == metav1.StatusReasonNotFound && call.Subresource == "":
		r.Exists, r.Absent = false, true
	}
	if r.Call == nil || isWrite || r.Call.Verb == call.Verb {
		r.Call, r.Step, r.Called = &call, step, at
	}
}

// callsOf returns the calls of a run with the paths of their steps.
func callsOf(run recorder.Run) iter.Seq2[recorder.Call, string] {
	return func(yield func(recorder.Call, string) bool) {
		for _, step := range run.Steps {
			for _, call := range step.Calls {
				if !yield(call, strings.Join(step.Path, ".")) {
					return
				}
			}
		}
		for _, call := range run.Calls {
			if !yield(call, "") {
				return
			}
		}
	}
}
