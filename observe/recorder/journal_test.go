// SPDX-License-Identifier: Apache-2.0

package recorder_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/observe"
	"trueup.dev/observe/recorder"
	"trueup.dev/observe/recording"
)

// answers is an API server and a cache whose next answer is given.
type answers struct {
	client.Client
	err   error
	items []corev1.ConfigMap
}

func (a *answers) GroupVersionKindFor(obj runtime.Object) (schema.GroupVersionKind, error) {
	kind := strings.TrimPrefix(fmt.Sprintf("%T", obj), "*v1.")
	return schema.GroupVersionKind{Version: "v1", Kind: kind}, nil
}

func (a *answers) answer(into client.Object) error {
	if a.err == nil && len(a.items) > 0 {
		a.items[0].DeepCopyInto(into.(*corev1.ConfigMap))
	}
	return a.err
}

func (a *answers) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	return a.answer(obj)
}

func (a *answers) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*corev1.ConfigMapList).Items = a.items
	return a.err
}

func (a *answers) Create(_ context.Context, obj client.Object, _ ...client.CreateOption) error {
	return a.answer(obj)
}

func (a *answers) Update(_ context.Context, obj client.Object, _ ...client.UpdateOption) error {
	return a.answer(obj)
}

func (a *answers) Delete(context.Context, client.Object, ...client.DeleteOption) error { return a.err }

func config(name, version, data string) corev1.ConfigMap {
	return corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, ResourceVersion: version},
		Data:       map[string]string{"a": data},
	}
}

var (
	notFound = apierrors.NewNotFound(corev1.Resource("configmaps"), "a")
	conflict = apierrors.NewConflict(corev1.Resource("configmaps"), "a", errors.New("changed"))
)

// script makes calls in one run, and lists what the recording has of them.
type script struct {
	*answers
	observed client.Client
	t        *testing.T
}

func (s *script) got(err error, items ...corev1.ConfigMap) { s.err, s.items = err, items }

func (s *script) get(err error, items ...corev1.ConfigMap) {
	s.got(err, items...)
	key := client.ObjectKey{Namespace: "default", Name: "a"}
	_ = s.observed.Get(s.t.Context(), key, &corev1.ConfigMap{}) // the recording has the error
}

func (s *script) list(items ...corev1.ConfigMap) {
	s.got(nil, items...)
	_ = s.observed.List(s.t.Context(), &corev1.ConfigMapList{}, client.InNamespace("default"))
}

func (s *script) create(err error, answer corev1.ConfigMap) {
	s.got(err, answer)
	_ = s.observed.Create(s.t.Context(), new(config("a", "", "")))
}

func (s *script) update(err error, answer corev1.ConfigMap) {
	s.got(err, answer)
	_ = s.observed.Update(s.t.Context(), new(config("a", "1", "")))
}

func (s *script) delete() {
	s.got(nil)
	_ = s.observed.Delete(s.t.Context(), new(config("a", "1", "")))
}

// newScript returns a script for a recorder, and the player of its runs.
func newScript(t *testing.T, r *recorder.Recorder) (*script, *play) {
	p, hub := &play{to: r}, &observe.Hub{}
	hub.Add(observe.Func(func(_ context.Context, e observe.Event) {
		call := e.(*observe.Call)
		call.Run = p.run
		p.observe(call)
	}))
	s := &script{answers: &answers{}, t: t}
	s.observed = observe.NewClient(s.answers, &informertest.FakeInformers{}, hub)
	return s, p
}

var databaseA = types.NamespacedName{Namespace: "default", Name: "db"}

// summary describes calls in a line each.
func summary(calls []recording.Call) []string {
	lines := []string{}
	for _, c := range calls {
		line := c.Verb + " " + c.Object.Name
		if c.Error != nil {
			line += " " + c.Error.Reason
		}
		for _, obj := range c.Objects {
			line += fmt.Sprintf(" +%s@%s", obj.Name, obj.ResourceVersion)
			if len(obj.Content) == 0 {
				line += " again"
			}
		}
		for _, stale := range c.Stale {
			line += fmt.Sprintf(" stale %s@%s of %s", stale.Name, stale.Has, stale.Known)
		}
		lines = append(lines, line)
	}
	return lines
}

// TestRecording_whatDidItSee tests which calls a recording has, and with which objects.
func TestRecording_whatDidItSee(t *testing.T) {
	for _, tc := range []struct {
		name  string
		calls func(*script)
		want  []string
	}{
		{"each version once", func(s *script) {
			s.get(nil, config("a", "1", "x"))
			s.get(nil, config("a", "1", "x"))
			s.get(nil, config("a", "2", "y"))
		}, []string{"get a +a@1", "get a +a@2"}},
		{"items of lists", func(s *script) {
			s.list(config("a", "1", "x"), config("b", "2", "x"))
			s.list(config("a", "1", "x"), config("b", "3", "x"))
		}, []string{"list  +a@1 +b@2", "list  +b@3"}},
		{"an answer that is older than the own write", func(s *script) {
			s.get(nil, config("a", "9", "x"))
			s.update(nil, config("a", "10", "y"))
			s.get(nil, config("a", "9", "x"))
			s.get(nil, config("a", "10", "x"))
		}, []string{"get a +a@9", "update a +a@10", "get a stale a@9 of 10"}},
		{"a cache without the created object", func(s *script) {
			s.get(notFound)
			s.get(notFound)
			s.create(nil, config("a", "5", "x"))
			s.get(notFound)
			s.list()
			s.get(nil, config("a", "5", "x"))
			s.list()
		}, []string{
			"get a NotFound", "create a +a@5", "get a NotFound stale a@ of 5", "list  stale a@ of 5", "get a +a@5 again",
		}},
		{"a cache with the deleted object", func(s *script) {
			s.get(nil, config("a", "5", "x"))
			s.delete()
			s.get(nil, config("a", "5", "x"))
			s.get(notFound)
		}, []string{"get a +a@5", "delete a", "get a stale a@5 of ", "get a NotFound"}},
		{"a conflict", func(s *script) {
			s.update(conflict, config("a", "", ""))
		}, []string{"update a Conflict"}},
		{"an error of the network", func(s *script) {
			s.update(errors.New("connection reset"), config("a", "", ""))
		}, []string{"update a "}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := recorder.New(recorder.Options{Objects: true})
			s, p := newScript(t, r)
			p.start("db")
			tc.calls(s)
			p.finish(reconcile.Result{}, nil)
			got, ok := r.Recording("database", databaseA)
			if !ok || len(got.Runs) != 1 {
				t.Fatalf("found %v, runs: %v", ok, got.Runs)
			}
			if diff := cmp.Diff(tc.want, summary(got.Runs[0].Calls)); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRecording_whichRuns tests that runs without anything new are counted, and how a run is described.
func TestRecording_whichRuns(t *testing.T) {
	r := recorder.New(recorder.Options{Objects: true, Mask: observe.Mask{Paths: []string{"data.a"}}})
	s, p := newScript(t, r)
	for range 3 {
		p.start("db")
		s.get(nil, config("a", "1", "x"))
		p.finish(reconcile.Result{}, nil)
	}
	p.start("db", observe.Cause{Type: observe.CauseRetry, Attempt: 2, Err: errors.New("before"), Count: 1})
	s.update(conflict, corev1.ConfigMap{})
	p.finish(reconcile.Result{}, conflict)

	got, _ := r.Recording("database", databaseA)
	if got.Version != recording.Version || got.Controller != "database" || got.Object.String() != "Database default/db" ||
		len(got.Runs) != 2 {
		t.Fatalf("got %+v", got)
	}
	content := string(got.Runs[0].Calls[0].Objects[0].Content)
	if !strings.Contains(content, `"data":{"a":"masked`) || !strings.Contains(content, `"kind":"ConfigMap"`) {
		t.Errorf("content: %s", content)
	}
	failed := got.Runs[1]
	if failed.Outcome != "Failed" || failed.NoOpsBefore != 2 || failed.Error != conflict.Error() ||
		failed.Causes[0].Type != "Retry" || failed.Causes[0].Error != "before" || failed.Calls[0].Error.Code != 409 {
		t.Errorf("got %+v", failed)
	}
}

func TestRecording_withoutObjects(t *testing.T) {
	r := recorder.New(recorder.Options{})
	s, p := newScript(t, r)
	p.start("db")
	s.get(nil, config("a", "1", "x"))
	p.finish(reconcile.Result{}, nil)
	if _, ok := r.Recording("database", databaseA); ok || r.KeepsObjects() {
		t.Error("the recorder keeps objects by default")
	}
	if _, ok := recorder.New(recorder.Options{Objects: true}).Recording("database", databaseA); ok {
		t.Error("an unknown object has a recording")
	}
}

// TestRecording_memory tests that recordings stay within their share of the memory, and keep the last objects.
func TestRecording_memory(t *testing.T) {
	const limit = 200_000
	r := recorder.New(recorder.Options{Objects: true, Bytes: limit})
	s, p := newScript(t, r)
	value := strings.Repeat("x", 1000)
	for i := range 300 {
		p.start("db")
		s.get(nil, config("a", fmt.Sprint(1000+i), value))
		s.list(config("constant", "7", value))
		p.finish(reconcile.Result{}, nil)
	}
	got, _ := r.Recording("database", databaseA)
	if r.Bytes() > limit || got.Omitted == 0 || len(got.Runs) == 0 || got.Omitted+len(got.Runs) != 300 {
		t.Errorf("%d bytes, %d runs kept, %d omitted", r.Bytes(), len(got.Runs), got.Omitted)
	}
	names := []string{}
	for _, obj := range got.Before {
		names = append(names, obj.Name+"@"+obj.ResourceVersion)
	}
	first := got.Runs[0].Calls[0].Objects[0].ResourceVersion
	want := []string{fmt.Sprintf("a@%d", 1000+got.Omitted-1), "constant@7"}
	if diff := cmp.Diff(want, names); diff != "" || first != fmt.Sprint(1000+got.Omitted) {
		t.Errorf("first run has %s; before it (-want +got):\n%s", first, diff)
	}

	for i := range 500 { // other objects
		p.start(fmt.Sprint("db-", i))
		s.get(nil, config("a", "1", value))
		p.finish(reconcile.Result{}, nil)
	}
	if _, ok := r.Recording("database", databaseA); ok || r.Bytes() > limit {
		t.Errorf("the oldest recording was not dropped, or %d bytes are too many", r.Bytes())
	}
}
