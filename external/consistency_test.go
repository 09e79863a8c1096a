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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"trueup.dev/external"
	"trueup.dev/internal/engine/calledby"
	"trueup.dev/internal/engine/planning"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	rtime "trueup.dev/time"
)

type bucketResource = external.Resource[*fixture.Resource, string]

// at expects what a reconcile does at a time after the start of the test.
func (w *world) at(after time.Duration, what string, want ...string) {
	w.Helper()
	ctx := rtime.StashNow(calledby.Controller(), time.Unix(1000, 0).Add(after))
	if diff := cmp.Diff(want, w.reconcile(ctx)); diff != "" {
		w.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// blindly makes Find and Observe find nothing while *blind is greater than zero.
func blindly(r *bucketResource, blind *int) {
	find, observe := r.Find, r.Observe
	r.Find = func(ctx context.Context, p *fixture.Resource, token string) (string, string, bool, error) {
		id, value, found, err := find(ctx, p, token)
		if *blind > 0 {
			*blind--
			return "", "", false, err
		}
		return id, value, found, err
	}
	r.Observe = func(ctx context.Context, p *fixture.Resource, id string) (string, bool, error) {
		value, found, err := observe(ctx, p, id)
		if *blind > 0 {
			*blind--
			return "", false, err
		}
		return value, found, err
	}
}

// idempotently makes Create return the first ID again for a token that was used.
func (w *world) idempotently(r *bucketResource) {
	create, used := r.Create, map[string]string{}
	r.Create = func(ctx context.Context, p *fixture.Resource, token string) (string, string, error) {
		if id, ok := used[token]; ok {
			w.cloud.calls = append(w.cloud.calls, "create "+token+" again")
			return id, "1", nil
		}
		id, value, err := create(ctx, p, token)
		used[token] = id
		return id, value, err
	}
}

func delayed(r *bucketResource) { r.VisibilityDelay = 0 } // the default

// Does a bucket leak whose creation had no response, if the resource is deleted before Find sees it?
func TestResource_deletedBeforeItIsVisible(t *testing.T) {
	blind := 0
	w := newWorld(t, func(r *bucketResource) {
		delayed(r)
		blindly(r, &blind)
	}, "", false)
	w.cloud.fails["create"] = errors.New("connection reset")
	w.at(0, "creation without a response", "find uid", "create uid", finalizerAdded,
		"error: ResourceResourceReconciler.Bucket.External: create Bucket: connection reset")
	w.cloud.fails, blind = map[string]error{}, 1
	if err := w.client.Delete(t.Context(), w.resource()); err != nil {
		t.Fatal(err)
	}
	w.at(time.Second, "it is not visible", "find uid", "again after 30s")
	w.at(31*time.Second, "it is visible", "find uid", "delete b1", "observe b1", "Normal ExternalFound Found Bucket b1",
		"Normal ExternalDeleted Deleted Bucket b1", finalizerAdded)
	if len(w.cloud.buckets) > 0 {
		t.Errorf("leaked: %v", w.cloud.buckets)
	}
}

// Is a deletion complete that finds nothing, and when?
func TestResource_deletedWithoutExternalResource(t *testing.T) {
	w := newWorld(t, delayed, "b1", true)
	w.at(0, "it is not found", "observe b1", "again after 30s")
	w.at(20*time.Second, "too early", "observe b1", "again after 10s")
	w.at(30*time.Second, "it does not exist", "observe b1", finalizerAdded)
}

// Is a creation announced before it is visible?
func TestResource_announcesWhatItSees(t *testing.T) {
	blind := 0
	w := newWorld(t, func(r *bucketResource) {
		delayed(r)
		blindly(r, &blind)
	}, "", false)
	blind = 3
	w.at(0, "creation", "find uid", "create uid", "observe b1", finalizerAdded, "again after 10s")
	if id := w.resource().Status.Fields["id"]; id != "b1" {
		t.Errorf("ID %q, want b1", id)
	}
	w.at(10*time.Second, "not visible yet", "observe b1", "again after 10s")
	w.at(20*time.Second, "visible", "observe b1", "Normal ExternalCreated Created Bucket b1")
	w.at(21*time.Second, "steady state", "observe b1")
}

// Is a bucket that another client has deleted created again, if the cloud remembers its token?
func TestResource_tokenOfATerminatedOne(t *testing.T) {
	w := newWorld(t, delayed, "", false)
	w.idempotently(w.bucket)
	w.at(0, "creation", "find uid", "create uid", "observe b1", finalizerAdded, "Normal ExternalCreated Created Bucket b1")
	clear(w.cloud.buckets)
	w.at(time.Minute, "it is not found", "observe b1", "again after 30s")
	w.at(2*time.Minute, "the response is about the old one", "observe b1", "find uid", "create uid again", "observe b1",
		"Warning ExternalMissing Bucket b1 no longer exists", "again after 10s")
	const next = "Warning ExternalMissing Create has returned Bucket b1, which does not exist; the next token is uid-"
	w.at(3*time.Minute, "which does not exist", "observe b1", next+"1", "again after 1s")
	w.at(3*time.Minute, "its successor", "find uid-1", "create uid-1", "observe b1",
		"Normal ExternalCreated Created Bucket b1")
	w.at(4*time.Minute, "steady state", "observe b1")

	// a lost status, and another deletion that happened meanwhile
	clear(w.cloud.buckets)
	r := w.resource()
	r.Status.Fields = nil
	if err := w.client.Status().Update(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	w.at(5*time.Minute, "the response is about the old one", "find uid-1", "create uid-1 again", "observe b1",
		"again after 10s")
	w.at(6*time.Minute, "which does not exist", "observe b1", next+"2", "again after 1s")
	w.at(6*time.Minute, "the third one", "find uid-2", "create uid-2", "observe b1",
		"Normal ExternalCreated Created Bucket b1")
	if annotation := w.resource().Annotations[finalizer+"-attempt"]; annotation != "2" {
		t.Errorf("attempt %q, want 2", annotation)
	}
}

// What does a plan show of a bucket that no longer exists?
func TestResource_planOfAMissingOne(t *testing.T) {
	w := newWorld(t, delayed, "b1", false)
	ctx := planning.With(calledby.Controller(), func(text string) {
		w.cloud.calls = append(w.cloud.calls, "announced: "+text)
	})
	want := []string{
		"observe b1", "find uid", "announced: create the Bucket of default/a",
		"Warning ExternalMissing Bucket b1 no longer exists",
	}
	if diff := cmp.Diff(want, w.reconcile(ctx)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Is a creation that takes time awaited, before the steps that follow?
func TestResource_ready(t *testing.T) {
	ready, later := false, 0
	w := newWorld(t, func(r *bucketResource) {
		r.Ready = func(context.Context, *fixture.Resource, string) bool { return ready }
	}, "", false)
	w.root.(*reconcilers.ResourceReconciler[*fixture.Resource]).Reconciler = reconcilers.Sequence[*fixture.Resource]{
		w.bucket, &reconcilers.SyncReconciler[*fixture.Resource]{
			Name: "Later", Sync: func(context.Context, *fixture.Resource) error {
				later++
				return nil
			},
		},
	}
	w.expect("creation", "find uid", "create uid", "observe b1", finalizerAdded,
		"Normal ExternalCreated Created Bucket b1", "again after 10s")
	w.expect("not ready", "observe b1", "again after 10s")
	if value := w.resource().Status.Fields["value"]; value != "1" || later > 0 {
		t.Errorf("value %q, later step %d times; want 1, and never", value, later)
	}
	ready = true
	w.expect("ready", "observe b1")
	if later != 1 {
		t.Errorf("later step %d times, want once", later)
	}
}

// replaced replaces the resource by one of the same name, as after a restore or another apply.
func (w *world) replaced(edit func(*fixture.Resource)) {
	w.Helper()
	r := &fixture.Resource{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "a", UID: "other", CreationTimestamp: metav1.Unix(9, 0), Generation: 1,
	}, Spec: fixture.ResourceSpec{Fields: map[string]string{"value": "1"}}}
	if edit != nil {
		edit(r)
	}
	w.client = fake.NewClientBuilder().WithScheme(fixture.NewScheme()).WithObjects(r).WithStatusSubresource(r).Build()
	w.root.(*reconcilers.ResourceReconciler[*fixture.Resource]).Config = reconcilers.Config{
		Client: w.client, APIReader: w.client, Recorder: w.events,
	}
}

// Is a bucket found by a resource that was restored from a backup, with a new UID and without a status?
func TestNameToken(t *testing.T) {
	w := newWorld(t, func(r *bucketResource) { r.Token = external.NameToken[*fixture.Resource]("prod") }, "", false)
	w.expect("creation", "find prod/default/a", "create prod/default/a", "observe b1", finalizerAdded,
		"Normal ExternalCreated Created Bucket b1")
	w.replaced(func(r *fixture.Resource) { r.Finalizers = []string{finalizer} })
	w.expect("restored", "find prod/default/a", "Normal ExternalFound Found Bucket b1")
	w.replaced(nil)
	w.expect("created again after it was retained", "find prod/default/a", finalizerAdded,
		"Normal ExternalFound Found Bucket b1")
	if len(w.cloud.buckets) != 1 {
		t.Errorf("buckets: %v, want one", w.cloud.buckets)
	}
}

// Can a retained bucket be taken over, and what if it does not exist?
func TestResource_import(t *testing.T) {
	w := newWorld(t, func(r *bucketResource) {
		r.Import = func(r *fixture.Resource) string { return r.Spec.Fields["import"] }
	}, "", false)
	w.replaced(func(r *fixture.Resource) { r.Spec.Fields["import"] = "b7" })
	const missing = "error: ResourceResourceReconciler.Bucket.External: import Bucket b7: it does not exist"
	w.expect("it does not exist", "observe b7", finalizerAdded, missing)
	w.cloud.buckets["b7"] = &stored{token: "uid", value: "1"}
	w.expect("import", "observe b7", "Normal ExternalImported Imported Bucket b7")
	w.expect("steady state", "observe b7")
	r := w.resource()
	r.Status.Fields = nil
	if err := w.client.Status().Update(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if err := w.client.Delete(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	w.expect("deletion without a record of the import", "find other", finalizerAdded)
	if len(w.cloud.buckets) != 1 {
		t.Errorf("buckets: %v, want the one that may not be ours", w.cloud.buckets)
	}
}

// Does a step that is wanted again get another bucket, although the cloud remembers the token of the first one?
func TestResource_wantedAgain(t *testing.T) {
	w := newWorld(t, delayed, "", false)
	w.idempotently(w.bucket)
	wanted := true
	w.root.(*reconcilers.ResourceReconciler[*fixture.Resource]).Reconciler = &reconcilers.Steps[*fixture.Resource]{
		Steps: []reconcilers.Step[*fixture.Resource]{{
			Name: "bucket", Reconciler: w.bucket, Wanted: func(context.Context, *fixture.Resource) bool { return wanted },
		}},
	}
	w.expect("wanted", "find uid", "create uid", "observe b1", finalizerAdded, "Normal ExternalCreated Created Bucket b1")
	wanted = false
	w.expect("unwanted", "observe b1", "delete b1", "observe b1",
		"Normal ExternalDeleted Deleted Bucket b1", finalizerAdded)
	if id := w.resource().Status.Fields["id"]; id != "" {
		t.Errorf("ID %q, want none", id)
	}
	wanted = true
	w.at(time.Hour, "wanted again", "find uid", "create uid again", "observe b1", finalizerAdded, "again after 10s")
	w.at(2*time.Hour, "the response is about the deleted one", "observe b1", "Warning ExternalMissing Create has "+
		"returned Bucket b1, which does not exist; the next token is uid-1", "again after 1s")
	w.at(2*time.Hour, "another token", "find uid-1", "create uid-1", "observe b1",
		"Normal ExternalCreated Created Bucket b1")
}

func TestResource_ValidateImport(t *testing.T) {
	r := &bucketResource{
		Name: "Bucket", Finalizer: "example.com/" + strings.Repeat("x", 60),
		Observe: func(context.Context, *fixture.Resource, string) (value string, found bool, err error) { return },
		Create: func(context.Context, *fixture.Resource, string) (id, value string, err error) {
			return
		},
		Delete: func(context.Context, *fixture.Resource, string) error { return nil },
		Import: func(*fixture.Resource) string { return "" },
	}
	got := strings.Split(fmt.Sprint(r.Validate(t.Context())), "\n")
	want := []string{`external.Resource "Bucket" must define ID, SetID and Find, because it defines Import`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("named (-want +got):\n%s", diff)
	}
	full := (&cloud{}).reconciler()
	full.Finalizer = r.Finalizer
	if err := full.Validate(t.Context()); err == nil || !strings.Contains(err.Error(), `"-attempt" can be added`) {
		t.Errorf("long finalizer: %v", err)
	}
}
