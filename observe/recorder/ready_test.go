// SPDX-License-Identifier: Apache-2.0

package recorder_test

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/observe"
	"trueup.dev/observe/recorder"
)

// withReady returns a database with a condition Ready.
func withReady(status string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{
		map[string]any{"type": "Ready", "status": status, "reason": "NameTaken", "message": "Secret a exists"},
	}}}}
	obj.SetGroupVersionKind(database)
	obj.SetNamespace("default")
	obj.SetName("a")
	return obj
}

// TestIsItReady tests that no call needs to fail for an object to be listed as not Ready.
func TestIsItReady(t *testing.T) {
	r := recorder.New(recorder.Options{})
	p := &play{to: r}
	object := types.NamespacedName{Namespace: "default", Name: "a"}
	exists := observe.Cause{Type: observe.CauseStartUp, Verb: observe.Created, Kind: database, Object: object, Count: 1}
	exists.SetObjects(nil, withReady("False"))
	write := func(status string) {
		call := observe.Call{Verb: observe.VerbUpdate, Subresource: "status", Kind: database, Object: object}
		call.SetObjects(withReady("Unknown"), withReady(status))
		p.call(root, call)
	}
	for _, step := range []struct {
		name     string
		run      func()
		state    recorder.State
		notReady string
	}{
		{"it existed at the start", func() { p.start("a", exists); p.finish(reconcile.Result{}, nil) },
			recorder.StateNotReady, "NameTaken: Secret a exists"},
		{"nothing changed", func() { p.noOp("a") }, recorder.StateNotReady, "NameTaken: Secret a exists"},
		{"it becomes Ready", func() { p.start("a"); write("True"); p.finish(reconcile.Result{}, nil) },
			recorder.StateSucceeded, ""},
		{"it is not Ready any more", func() { p.start("a"); write("False"); p.finish(reconcile.Result{}, nil) },
			recorder.StateNotReady, "NameTaken: Secret a exists"},
		{"a reconcile fails", func() { p.start("a"); p.finish(reconcile.Result{}, errors.New("no")) },
			recorder.StateFailing, "NameTaken: Secret a exists"},
	} {
		step.run()
		h := history(t, r, "a")
		if h.State != step.state || h.NotReady != step.notReady {
			t.Errorf("%s: got %s, %q, want %s, %q", step.name, h.State, h.NotReady, step.state, step.notReady)
		}
		want := 0
		if step.notReady != "" {
			want = 1
		}
		if got := r.Controllers()[0].NotReady; got != want {
			t.Errorf("%s: %d objects are not Ready, want %d", step.name, got, want)
		}
	}
}
