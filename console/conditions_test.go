// SPDX-License-Identifier: Apache-2.0

package console

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"trueup.dev/observe"
	"trueup.dev/observe/recorder"
)

var (
	started = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	shop    = recorder.Ref{Group: "example.com", Kind: "Database", Namespace: "default", Name: "shop"}
	service = recorder.Ref{Version: "v1", Kind: "Service", Namespace: "default", Name: "shop"}
	secret  = recorder.Ref{Version: "v1", Kind: "Secret", Namespace: "default", Name: "tls"}
)

// history returns the history of an object with runs, the oldest first, one in each second.
func history(runs ...recorder.Run) recorder.History {
	h := recorder.History{Object: recorder.Object{Controller: "database", Object: shop}}
	for i, run := range runs {
		run.Started = started.Add(time.Duration(i) * time.Second)
		h.History = append([]recorder.Run{run}, h.History...)
	}
	return h
}

// write returns a run with a step that updates the status of the object.
func write(changes ...observe.Change) recorder.Run {
	call := recorder.Call{Verb: "update", Subresource: "status", Object: shop, Changes: changes}
	return recorder.Run{ID: "w", Steps: []recorder.Step{{Path: []string{"Database"}, Calls: []recorder.Call{call}}}}
}

// event returns a run that a change of the object caused.
func event(changes ...observe.Change) recorder.Run {
	return recorder.Run{ID: "e", Causes: []recorder.Cause{{
		Type: observe.CauseObject, Verb: observe.Updated, Object: shop, Changes: changes,
	}}}
}

func TestWhenDidTheConditionsChange(t *testing.T) {
	at := func(second int) time.Time { return started.Add(time.Duration(second) * time.Second) }
	added := observe.Change{
		Path: "status.conditions[Ready]: added, status False, reason SecretNotFound", After: `"Secret \"tls\" does not exist"`,
	}
	missing := ConditionChange{
		At: at(0), Status: "False", Reason: "SecretNotFound", Message: `Secret "tls" does not exist`, Run: "w",
	}
	for name, tc := range map[string]struct {
		runs []recorder.Run
		want []Condition
	}{
		"other changes": {
			[]recorder.Run{write(observe.Change{Path: "status.replicas", Before: "1", After: "2"})}, []Condition{},
		},
		"changes of other fields of conditions": {
			[]recorder.Run{
				event(
					observe.Change{Path: "status.conditions[Ready]: observedGeneration 1→2"},
					observe.Change{Path: "status.conditions[Synced]: observedGeneration 1→2"},
				),
			},
			[]Condition{},
		},
		"a write that causes a reconcile": {
			[]recorder.Run{write(added), event(added)}, []Condition{{"Ready", []ConditionChange{missing}}},
		},
		"back and forth": {
			[]recorder.Run{
				write(added),
				write(observe.Change{
					Path:   "status.conditions[Ready]: status False→True, reason SecretNotFound→Ready, message",
					Before: `"Secret \"tls\" does not exist"`,
				}),
				event(observe.Change{Path: "status.conditions[Ready]: status True→Unknown"}),
			},
			[]Condition{{"Ready", []ConditionChange{
				{At: at(2), Status: "Unknown", Reason: "Ready", Run: "e"},
				{At: at(1), Status: "True", Reason: "Ready", Run: "w"},
				missing,
			}}},
		},
		"removed": {
			[]recorder.Run{write(added), write(observe.Change{Path: "status.conditions[Ready]: removed, status False"})},
			[]Condition{{"Ready", []ConditionChange{{At: at(1), Run: "w"}, missing}}},
		},
		"the worst first": {
			[]recorder.Run{write(
				observe.Change{Path: "status.conditions[A]: added, status True"},
				observe.Change{Path: "status.conditions[B]: added, status Unknown"},
				observe.Change{Path: "status.conditions[C]: added, status False"},
			)},
			[]Condition{
				{"C", []ConditionChange{{At: at(0), Status: "False", Run: "w"}}},
				{"B", []ConditionChange{{At: at(0), Status: "Unknown", Run: "w"}}},
				{"A", []ConditionChange{{At: at(0), Status: "True", Run: "w"}}},
			},
		},
		"a long message": {
			[]recorder.Run{write(observe.Change{Path: "status.conditions[A]: message", After: `"shortened…`})},
			[]Condition{{"A", []ConditionChange{{At: at(0), Message: "shortened…", Run: "w"}}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, conditionsOf(history(tc.runs...))); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhichChildFails(t *testing.T) {
	calls := func(calls ...recorder.Call) recorder.Run {
		return recorder.Run{Steps: []recorder.Step{{Path: []string{"Database", "Service"}, Calls: calls}}}
	}
	owned := recorder.Run{Causes: []recorder.Cause{{
		Type: observe.CauseOwned, Verb: observe.Deleted, Object: service,
	}}}
	h := &handler{recorder: recorder.New(recorder.Options{})}
	for name, tc := range map[string]struct {
		runs []recorder.Run
		want []Related
	}{
		"created, then refused": {
			[]recorder.Run{
				calls(recorder.Call{Verb: "create", Object: secret}, recorder.Call{Verb: "create", Object: service}),
				calls(recorder.Call{Verb: "update", Object: service, Error: "quota"}, recorder.Call{Verb: "get", Object: service}),
			},
			[]Related{
				{Object: service, Step: "Database.Service", Exists: true, Call: &recorder.Call{Verb: "update", Error: "quota"}},
				{Object: secret, Step: "Database.Service", Exists: true, Call: &recorder.Call{Verb: "create"}},
			},
		},
		"not found": {
			[]recorder.Run{calls(recorder.Call{
				Verb: "get", Cached: true, Object: secret, Error: "not found", Reason: metav1.StatusReasonNotFound,
			})},
			[]Related{{
				Object: secret, Step: "Database.Service", Absent: true,
				Call: &recorder.Call{Verb: "get", Error: "not found", Reason: metav1.StatusReasonNotFound},
			}},
		},
		"read without an answer": {
			[]recorder.Run{calls(recorder.Call{Verb: "get", Object: secret, Error: "timeout"})},
			[]Related{{Object: secret, Step: "Database.Service", Call: &recorder.Call{Verb: "get", Error: "timeout"}}},
		},
		"refused, and never read": {
			[]recorder.Run{calls(recorder.Call{Verb: "update", Object: secret, Error: "quota"})},
			[]Related{{Object: secret, Step: "Database.Service", Call: &recorder.Call{Verb: "update", Error: "quota"}}},
		},
		"name is taken": {
			[]recorder.Run{calls(recorder.Call{
				Verb: "create", Object: secret, Error: "exists", Reason: metav1.StatusReasonAlreadyExists,
			})},
			[]Related{{
				Object: secret, Step: "Database.Service", Exists: true,
				Call: &recorder.Call{Verb: "create", Error: "exists", Reason: metav1.StatusReasonAlreadyExists},
			}},
		},
		"deleted by another client": {
			[]recorder.Run{calls(recorder.Call{Verb: "create", Object: service}), owned},
			[]Related{{
				Object: service, Relation: observe.CauseOwned, Step: "Database.Service", Absent: true,
				Call: &recorder.Call{Verb: "create"},
			}},
		},
		"dry runs, lists and the object itself": {
			[]recorder.Run{calls(
				recorder.Call{Verb: "create", Object: service, DryRun: true}, recorder.Call{Verb: "update", Object: shop},
				recorder.Call{Verb: "list", Object: recorder.Ref{Kind: "Service", Namespace: "default"}},
			)},
			[]Related{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			options := cmp.Options{
				cmpopts.IgnoreFields(Related{}, "Called", "Event"), cmpopts.IgnoreFields(recorder.Call{}, "Object", "Cached"),
			}
			if diff := cmp.Diff(tc.want, h.relatedTo(history(tc.runs...)), options); diff != "" {
				t.Errorf("related objects (-want +got):\n%s", diff)
			}
		})
	}
}
