// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/external"
	"trueup.dev/internal/engine/calledby"
	"trueup.dev/internal/engine/planning"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

const finalizer = "example.com/bucket"

// cloud has buckets with a token, a value and a number of observations until a deletion is complete.
type cloud struct {
	buckets map[string]*stored
	calls   []string
	fails   map[string]error
	slow    bool // deletions take effect after one more observation
}

type stored struct {
	token, value string
	deleted      bool
}

func (c *cloud) call(name string, args ...any) error {
	c.calls = append(c.calls, strings.TrimSpace(fmt.Sprintln(append([]any{name}, args...)...)))
	return c.fails[name]
}

func (c *cloud) reconciler() *external.Resource[*fixture.Resource, string] {
	return &external.Resource[*fixture.Resource, string]{
		Name: "Bucket", Finalizer: finalizer, VisibilityDelay: -1,
		ID:    func(r *fixture.Resource) string { return r.Status.Fields["id"] },
		SetID: func(r *fixture.Resource, id string) { r.Status.Fields = map[string]string{"id": id} },
		Find: func(_ context.Context, _ *fixture.Resource, token string) (string, string, bool, error) {
			if err := c.call("find", token); err != nil {
				return "", "", false, err
			}
			for id, b := range c.buckets {
				if b.token == token {
					return id, b.value, true, nil
				}
			}
			return "", "", false, nil
		},
		Observe: func(_ context.Context, _ *fixture.Resource, id string) (string, bool, error) {
			if err := c.call("observe", id); err != nil {
				return "", false, err
			}
			b := c.buckets[id]
			if b != nil && b.deleted && !c.slow {
				delete(c.buckets, id)
				return "", false, nil
			}
			c.slow = false
			if b == nil {
				return "", false, nil
			}
			return b.value, true, nil
		},
		Create: func(_ context.Context, r *fixture.Resource, token string) (string, string, error) {
			id := fmt.Sprintf("b%d", len(c.buckets)+1)
			c.buckets[id] = &stored{token: token, value: r.Spec.Fields["value"]}
			return id, r.Spec.Fields["value"], c.call("create", token) // a lost response if it fails
		},
		InSync: func(_ context.Context, r *fixture.Resource, value string) bool {
			return value == r.Spec.Fields["value"]
		},
		Update: func(_ context.Context, r *fixture.Resource, id, _ string) (string, error) {
			c.buckets[id].value = r.Spec.Fields["value"]
			return r.Spec.Fields["value"], c.call("update", id)
		},
		Delete: func(_ context.Context, _ *fixture.Resource, id string) error {
			c.buckets[id].deleted = true
			return c.call("delete", id)
		},
		Reflect: func(_ context.Context, r *fixture.Resource, value string) { r.Status.Fields["value"] = value },
	}
}

type world struct {
	*testing.T
	cloud  *cloud
	client client.Client
	events *record.FakeRecorder
	root   reconcile.Reconciler

	bucket *external.Resource[*fixture.Resource, string]
}

func newWorld(t *testing.T, edit func(*external.Resource[*fixture.Resource, string]), id string, deleting bool) *world {
	t.Helper()
	w := &world{T: t, cloud: &cloud{buckets: map[string]*stored{}, fails: map[string]error{}}}
	resource := &fixture.Resource{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "a", UID: "uid", CreationTimestamp: metav1.Unix(1, 0), Generation: 1,
		},
		Spec: fixture.ResourceSpec{Fields: map[string]string{"value": "1"}},
	}
	if id != "" {
		resource.Status.Fields = map[string]string{"id": id}
		resource.Finalizers = []string{finalizer}
	}
	if deleting {
		resource.Finalizers = append(resource.Finalizers, "example.com/other")
		resource.DeletionTimestamp = &metav1.Time{Time: time.Unix(2, 0)}
	}
	scheme := fixture.NewScheme()
	w.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(resource).WithStatusSubresource(resource).Build()
	w.events = record.NewFakeRecorder(20)
	r := w.cloud.reconciler()
	if edit != nil {
		edit(r)
	}
	w.bucket = r
	w.root = &reconcilers.ResourceReconciler[*fixture.Resource]{
		Reconciler: r, Config: reconcilers.Config{Client: w.client, APIReader: w.client, Recorder: w.events},
	}
	return w
}

// reconcile returns the calls of the cloud, the events and the error of a reconcile.
func (w *world) reconcile(ctx context.Context) (trace []string) {
	w.Helper()
	w.cloud.calls = nil
	result, err := w.root.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "default", Name: "a"}})
	trace = append(trace, w.cloud.calls...)
	for len(w.events.Events) > 0 {
		event := <-w.events.Events
		if !strings.Contains(event, "ReconcileFailed") { // the error is below
			trace = append(trace, event)
		}
	}
	if err != nil {
		trace = append(trace, "error: "+err.Error())
	}
	if result.RequeueAfter > 0 {
		trace = append(trace, "again after "+result.RequeueAfter.String())
	}
	return trace
}

func (w *world) resource() *fixture.Resource {
	w.Helper()
	r := &fixture.Resource{}
	if err := w.client.Get(w.Context(), client.ObjectKey{Namespace: "default", Name: "a"}, r); err != nil {
		w.Fatal(err)
	}
	return r
}

func (w *world) expect(what string, want ...string) {
	w.Helper()
	if diff := cmp.Diff(want, w.reconcile(calledby.Controller())); diff != "" {
		w.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

const finalizerAdded = `Normal FinalizerPatched Patched finalizer "example.com/bucket"`

func TestResource_Life(t *testing.T) {
	w := newWorld(t, nil, "", false)
	w.expect("creation", "find uid", "create uid", "observe b1", finalizerAdded,
		"Normal ExternalCreated Created Bucket b1")
	if diff := cmp.Diff(map[string]string{"id": "b1", "value": "1"}, w.resource().Status.Fields); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	w.expect("steady state", "observe b1")
	w.cloud.buckets["b1"].value = "by hand"
	w.expect("drift", "observe b1", "update b1", "Normal ExternalUpdated Updated Bucket b1")
	delete(w.cloud.buckets, "b1")
	w.expect("deleted by hand", "observe b1", "find uid", "create uid", "observe b1",
		"Warning ExternalMissing Bucket b1 no longer exists", "Normal ExternalCreated Created Bucket b1")
	if err := w.client.Delete(t.Context(), w.resource()); err != nil {
		t.Fatal(err)
	}
	w.cloud.slow = true
	w.cloud.fails["delete"] = errors.New("busy")
	w.expect("failed deletion", "observe b1", "delete b1",
		"error: ResourceResourceReconciler.Bucket.External: delete Bucket b1: busy")
	w.cloud.fails, w.cloud.slow = map[string]error{}, false
	w.cloud.buckets["b1"].deleted = false
	w.expect("deletion", "observe b1", "delete b1", "observe b1",
		"Normal ExternalDeleted Deleted Bucket b1", finalizerAdded)
	err := w.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "a"}, &fixture.Resource{})
	if err == nil {
		t.Error("the resource still exists")
	}
}

func TestResource_Cases(t *testing.T) {
	retain := func(r *external.Resource[*fixture.Resource, string]) {
		r.DeletionPolicy = func(*fixture.Resource) external.DeletionPolicy { return external.Retain }
	}
	for name, c := range map[string]struct {
		edit     func(*external.Resource[*fixture.Resource, string])
		id       string
		deleting bool
		buckets  map[string]*stored
		fails    string
		slow     bool
		plan     bool
		want     []string
		held     bool // whether the finalizer remains
		wantID   string
	}{
		"found by its token after a lost response": {
			buckets: map[string]*stored{"b7": {token: "uid", value: "1"}},
			want:    []string{"find uid", finalizerAdded, "Normal ExternalFound Found Bucket b7"},
			held:    true, wantID: "b7",
		},
		"the response is lost": {
			fails: "create",
			want: []string{
				"find uid", "create uid", finalizerAdded,
				"error: ResourceResourceReconciler.Bucket.External: create Bucket: create fails",
			},
			held: true,
		},
		"it cannot be observed": {
			id: "b1", buckets: map[string]*stored{"b1": {token: "uid", value: "1"}}, fails: "observe",
			want: []string{
				"observe b1", "error: ResourceResourceReconciler.Bucket.External: observe Bucket b1: observe fails",
			},
			held: true, wantID: "b1",
		},
		"deleted before it was created": {
			deleting: true,
		},
		"deleted after a lost response": {
			deleting: true, id: "none", edit: func(r *external.Resource[*fixture.Resource, string]) {
				r.ID = func(r *fixture.Resource) string { return strings.TrimPrefix(r.Status.Fields["id"], "none") }
			},
			buckets: map[string]*stored{"b7": {token: "uid", value: "1"}},
			want: []string{
				"find uid", "delete b7", "observe b7", "Normal ExternalFound Found Bucket b7",
				"Normal ExternalDeleted Deleted Bucket b7", finalizerAdded,
			},
			wantID: "none",
		},
		"the deletion takes time": {
			deleting: true, id: "b1", buckets: map[string]*stored{"b1": {token: "uid", value: "1"}},
			edit: func(r *external.Resource[*fixture.Resource, string]) {
				observe, n := r.Observe, 0
				r.Observe = func(ctx context.Context, res *fixture.Resource, id string) (string, bool, error) {
					if n++; n == 2 {
						return "1", true, nil
					}
					return observe(ctx, res, id)
				}
			},
			want: []string{"observe b1", "delete b1", "again after 10s"},
			held: true, wantID: "b1",
		},
		"retained before its ID was recorded": {
			deleting: true, id: "none", edit: func(r *external.Resource[*fixture.Resource, string]) {
				retain(r)
				r.ID = func(*fixture.Resource) string { return "" }
			},
			want:   []string{"Normal ExternalRetained Retained Bucket", finalizerAdded},
			wantID: "none",
		},
		"retained": {
			deleting: true, id: "b1", edit: retain, buckets: map[string]*stored{"b1": {token: "uid", value: "1"}},
			want:   []string{"Normal ExternalRetained Retained Bucket b1", finalizerAdded},
			wantID: "b1",
		},
		"deleted by hand before": {
			deleting: true, id: "b1",
			want:   []string{"observe b1", finalizerAdded},
			wantID: "b1",
		},
		"planned creation": {
			plan: true,
			want: []string{"find uid", "announced: create the Bucket of default/a", finalizerAdded},
			held: true,
		},
		"planned update": {
			plan: true, id: "b1", buckets: map[string]*stored{"b1": {token: "uid", value: "2"}},
			want: []string{"observe b1", "announced: update the Bucket b1 of default/a"},
			held: true, wantID: "b1",
		},
		"planned deletion": {
			plan: true, deleting: true, id: "b1", buckets: map[string]*stored{"b1": {token: "uid", value: "2"}},
			want:   []string{"observe b1", "announced: delete the Bucket b1 of default/a", finalizerAdded},
			wantID: "b1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.edit, c.id, c.deleting)
			if c.buckets != nil {
				w.cloud.buckets = c.buckets
			}
			if c.fails != "" {
				w.cloud.fails[c.fails] = errors.New(c.fails + " fails")
			}
			ctx := calledby.Controller()
			if c.plan {
				ctx = planning.With(ctx, func(text string) { w.cloud.calls = append(w.cloud.calls, "announced: "+text) })
			}
			if diff := cmp.Diff(c.want, w.reconcile(ctx)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			resource := w.resource()
			if held := strings.Contains(fmt.Sprint(resource.Finalizers), finalizer); held != c.held {
				t.Errorf("finalizers %v", resource.Finalizers)
			}
			if id := resource.Status.Fields["id"]; id != c.wantID {
				t.Errorf("ID %q, want %q", id, c.wantID)
			}
		})
	}
}

// TestResource_Named has an external system in which the token is the ID: nothing is recorded.
func TestResource_Named(t *testing.T) {
	w := newWorld(t, func(r *external.Resource[*fixture.Resource, string]) {
		r.ID, r.SetID, r.Find = nil, nil, nil
	}, "", false)
	r := w.bucket
	r.Create = func(_ context.Context, r *fixture.Resource, token string) (string, string, error) {
		w.cloud.buckets[token] = &stored{token: token, value: r.Spec.Fields["value"]}
		return "", r.Spec.Fields["value"], w.cloud.call("create", token)
	}
	r.Reflect = nil
	w.cloud.fails["create"] = errors.New("no response")
	w.expect("lost response", "observe uid", "create uid", finalizerAdded,
		"error: ResourceResourceReconciler.Bucket.External: create Bucket: no response")
	w.cloud.fails = nil
	w.expect("steady state", "observe uid")
	w.cloud.buckets["uid"].value = "by hand"
	w.expect("drift", "observe uid", "update uid", "Normal ExternalUpdated Updated Bucket uid")
	delete(w.cloud.buckets, "uid")
	w.expect("deleted by hand", "observe uid", "create uid", "Normal ExternalCreated Created Bucket uid")
	if fields := w.resource().Status.Fields; len(fields) != 0 {
		t.Errorf("status %v, want none", fields)
	}
	if err := w.client.Delete(t.Context(), w.resource()); err != nil {
		t.Fatal(err)
	}
	w.expect("deletion", "observe uid", "delete uid", "observe uid",
		"Normal ExternalDeleted Deleted Bucket uid", finalizerAdded)
}

// TestResource_Unwanted has a step that is not wanted: it deletes the external resource.
func TestResource_Unwanted(t *testing.T) {
	w := newWorld(t, nil, "b1", false)
	w.cloud.buckets["b1"] = &stored{token: "uid", value: "1"}
	wanted := true
	w.root.(*reconcilers.ResourceReconciler[*fixture.Resource]).Reconciler = &reconcilers.Steps[*fixture.Resource]{
		Steps: []reconcilers.Step[*fixture.Resource]{{
			Name: "bucket", Reconciler: w.cloud.reconciler(),
			Wanted: func(context.Context, *fixture.Resource) bool { return wanted },
		}},
	}
	w.expect("wanted", "observe b1")
	wanted = false
	w.expect("unwanted", "observe b1", "delete b1", "observe b1",
		"Normal ExternalDeleted Deleted Bucket b1", finalizerAdded)
	w.expect("afterwards")
	if finalizers := w.resource().Finalizers; len(finalizers) != 0 {
		t.Errorf("finalizers %v, want none", finalizers)
	}
}

func TestResource_Drift(t *testing.T) {
	w := newWorld(t, func(r *external.Resource[*fixture.Resource, string]) { r.DriftInterval = time.Hour }, "", false)
	first := w.reconcile(calledby.Controller())
	if len(first) != 6 || !strings.HasPrefix(first[5], "again after") {
		t.Fatalf("creation: %q", first)
	}
	if second := w.reconcile(calledby.Controller()); len(second) != 1 || !strings.HasPrefix(second[0], "again after") {
		t.Errorf("the external resource is observed before the interval has passed: %q", second)
	}
}

func TestResource_Validate(t *testing.T) {
	want := []string{
		"Name", "Finalizer",
		"ID: all of ID, SetID and Find, or none", "SetID: all of ID, SetID and Find, or none",
		"Observe", "Create", "Delete", "Update, because it defines InSync",
		"intervals that are not negative, got -1s and 10s",
	}
	err := (&external.Resource[*corev1.ConfigMap, string]{
		InSync: func(context.Context, *corev1.ConfigMap, string) bool { return true }, DriftInterval: -time.Second,
		Find: func(context.Context, *corev1.ConfigMap, string) (id, external string, found bool, err error) { return },
	}).Validate(t.Context())
	var got []string
	for line := range strings.Lines(fmt.Sprint(err)) {
		_, field, _ := strings.Cut(strings.TrimSpace(line), "must define ")
		got = append(got, field)
	}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}
