// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	"trueup.dev/tracker"
)

// themed returns a reconciler whose resources track the theme with TrackAndGet, and "direct" with the tracker.
func themed[T client.Object](config reconcilers.Config, kind T, theme string) *reconcilers.ResourceReconciler[T] {
	return &reconcilers.ResourceReconciler[T]{
		Config: config, Type: kind, SkipStatusUpdate: true,
		Reconciler: &reconcilers.SyncReconciler[T]{Sync: func(ctx context.Context, resource T) error {
			config := reconcilers.RetrieveConfigOrDie(ctx)
			if err := config.Tracker.TrackObject(newConfigMap("direct"), resource); err != nil {
				return err
			}
			return client.IgnoreNotFound(
				config.TrackAndGet(ctx, types.NamespacedName{Namespace: "default", Name: theme}, &corev1.ConfigMap{}),
			)
		}},
	}
}

func TestResourceReconciler_ForgetsTracksOfADeletedResource(t *testing.T) {
	other := &fixture.ResourceNoStatus{ObjectMeta: newResource().ObjectMeta}
	for name, duckTyped := range map[string]bool{"typed": false, "duck": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newResource(), other.DeepCopy())
			w.Config.Tracker = tracker.New(w.Scheme, time.Hour)
			ctx := context.Background()
			var deleted root = themed(w.Config, &fixture.Resource{}, "theme")
			if duckTyped {
				deleted = themed(w.Config, fixture.NewDuck("", ""), "theme")
			}
			stays := themed(w.Config, &fixture.ResourceNoStatus{}, "other")
			both := []types.NamespacedName{testRequest.NamespacedName}
			observers := func(when string, of string, want []types.NamespacedName) {
				t.Helper()
				got, err := w.Config.Tracker.GetObservers(newConfigMap(of))
				wantErr(t, nil, err)
				equal(t, when+": observers of "+of, want, got)
			}
			for _, r := range []root{deleted, stays} {
				_, err := r.Reconcile(ctx, testRequest)
				wantErr(t, nil, err)
			}
			for _, of := range []string{"theme", "other", "direct"} {
				observers("tracked", of, both)
			}

			wantErr(t, nil, w.Server.Delete(ctx, newResource()))
			_, err := deleted.Reconcile(ctx, testRequest)
			wantErr(t, nil, err)
			observers("one resource is deleted", "theme", nil)
			observers("one resource is deleted", "other", both)
			observers("one resource is deleted", "direct", both)

			wantErr(t, nil, w.Server.Delete(ctx, other.DeepCopy()))
			_, err = stays.Reconcile(ctx, testRequest)
			wantErr(t, nil, err)
			observers("both resources are deleted", "other", nil)
			observers("both resources are deleted", "direct", nil)
		})
	}
}

// A failed fetch does not show whether the resource exists.
func TestResourceReconciler_KeepsTracksWhenFetchFails(t *testing.T) {
	w := newWorld(t, newResource())
	w.Config.Tracker = tracker.New(w.Scheme, time.Hour)
	r := themed(w.Config, &fixture.Resource{}, "theme")
	_, err := r.Reconcile(context.Background(), testRequest)
	wantErr(t, nil, err)
	w.Fail("get Resource", errTest)
	_, err = r.Reconcile(context.Background(), testRequest)
	wantErr(t, errTest, err)
	observers, err := w.Config.Tracker.GetObservers(newConfigMap("theme"))
	wantErr(t, nil, err)
	equal(t, "observers", []types.NamespacedName{testRequest.NamespacedName}, observers)
}

// Is a resource that is deleted during its reconcile reported as a failure? Nothing is logged, recorded or returned.
func TestResourceReconciler_DeletedDuringTheReconcile(t *testing.T) {
	w := newWorld(t, newResource())
	r := &resourceReconciler{Config: w.Config, Reconciler: &syncReconciler{
		Sync: func(ctx context.Context, resource *fixture.Resource) error {
			resource.Status.Fields = map[string]string{"key": "value"}
			return w.Server.Delete(ctx, resource.DeepCopy())
		},
	}}
	logged := []string{}
	ctx := logr.NewContext(t.Context(), funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{}))
	_, err := r.ReconcileManaged(ctx, testRequest)
	wantErr(t, nil, err)
	equal(t, "requests and events", []string{
		"get Resource default/test", "update Resource/status default/test", "live get Resource default/test",
	}, w.Trace())
	for _, line := range logged {
		if strings.Contains(line, "error") {
			t.Errorf("unexpected log line %s", line)
		}
	}
}
