// SPDX-License-Identifier: Apache-2.0

package recorder_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	const text = "NameTaken: Secret a exists"
	run := func(status string, err error, causes ...observe.Cause) {
		p.start("a", causes...)
		defer func() { p.finish(reconcile.Result{}, err) }()
		if status == "" {
			return
		}
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
		{"it existed at the start", func() { run("", nil, exists) }, recorder.StateNotReady, text},
		{"nothing changed", func() { p.noOp("a") }, recorder.StateNotReady, text},
		{"it becomes Ready", func() { run("True", nil) }, recorder.StateSucceeded, ""},
		{"it is not known", func() { run("Unknown", nil) }, recorder.StateSucceeded, text},
		{"it is no longer Ready", func() { run("False", nil) }, recorder.StateNotReady, text},
		{"a reconcile fails", func() { run("", errors.New("no")) }, recorder.StateFailing, text},
	} {
		step.run()
		h := history(t, r, "a")
		if h.State != step.state || h.NotReady != step.notReady {
			t.Errorf("%s: got %s, %q, want %s, %q", step.name, h.State, h.NotReady, step.state, step.notReady)
		}
		want := 0
		if h.Ready == metav1.ConditionFalse {
			want = 1
		}
		if got := r.Controllers()[0].NotReady; got != want {
			t.Errorf("%s: %d objects are not Ready, want %d", step.name, got, want)
		}
	}
}

// TestWhatWasNotStored tests that the fields are shown until a write of the object stores all it sends.
func TestWhatWasNotStored(t *testing.T) {
	r := recorder.New(recorder.Options{})
	p := &play{to: r}
	write := func(name string, fields ...string) {
		p.start("a")
		p.call(root, observe.Call{
			Verb: observe.VerbUpdate, Kind: configMap, Object: types.NamespacedName{Name: name}, Dropped: fields,
		})
		p.finish(reconcile.Result{}, nil)
	}
	want := func(texts ...string) {
		t.Helper()
		got := []string{}
		for _, dropped := range history(t, r, "a").Dropped {
			got = append(got, dropped.String())
		}
		if diff := cmp.Diff(texts, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("not stored (-want +got):\n%s", diff)
		}
	}
	const text = "the API server has not stored spec.a, spec.b of ConfigMap b: the schema of the kind does not have it"
	write("b", "spec.a", "spec.b")
	want(text)
	if notes := history(t, r, "a").History[0].Steps[0].Calls[0].Notes(); notes[0] != "not stored: spec.a, spec.b" {
		t.Errorf("got notes %q", notes)
	}
	write("c")
	p.noOp("a")
	want(text)
	write("b")
	want()
}

// TestWhyDidItRunAtTheStart tests that each existing child does not add a cause.
func TestWhyDidItRunAtTheStart(t *testing.T) {
	r := recorder.New(recorder.Options{})
	p := &play{to: r}
	causes := []observe.Cause{}
	for _, name := range []string{"a", "b", "c"} {
		causes = append(causes, observe.Cause{
			Type: observe.CauseStartUp, Verb: observe.Created, Kind: configMap, Count: 1,
			Object: types.NamespacedName{Name: name},
		})
	}
	p.start("a", causes...)
	p.finish(reconcile.Result{}, errors.New("no"))
	got := []string{}
	for _, cause := range history(t, r, "a").History[0].Causes {
		got = append(got, cause.String())
	}
	if diff := cmp.Diff([]string{"the controller started"}, got); diff != "" {
		t.Errorf("causes (-want +got):\n%s", diff)
	}
}
