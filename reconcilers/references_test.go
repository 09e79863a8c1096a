// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// An idle resource keeps its references, whatever the sync period of the config. A reference that is no longer needed
// is dropped by a reconcile after two sync periods.
func TestReferences_OfIdleResources(t *testing.T) {
	type reconciler = interface {
		SetupWithManager(ctx context.Context, mgr reconcilers.Manager) error
		ReconcileManaged(ctx context.Context, req reconcilers.Request) (reconcilers.Result, error)
	}
	type world struct {
		tracks, skipped bool
		err             error
	}
	for name, tc := range map[string]struct {
		period time.Duration
		// change is made after the first reconcile. The second one is after a long time.
		change  func(w *world)
		deleted bool
		want    int
		advice  bool
	}{
		"renewed":                {period: time.Second, want: 1},
		"no sync period":         {want: 1, advice: true},
		"a negative sync period": {period: -time.Second, want: 1, advice: true},
		"no longer needed":       {period: time.Second, change: func(w *world) { w.tracks = false }},
		"the reconcile fails":    {period: time.Second, change: func(w *world) { *w = world{err: errTest} }, want: 1},
		"the reconcile halts": {period: time.Second, want: 1, change: func(w *world) {
			w.tracks, w.err = false, reconcilers.ErrHaltSubReconcilers
		}},
		"the step does not run":    {period: time.Second, change: func(w *world) { w.skipped = true }, want: 1},
		"the resource was deleted": {period: time.Second, deleted: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newResource())
			mgr := newManager(t, w, newEventCache(w.Scheme))
			state := &world{tracks: true}
			step := &syncReconciler{
				Setup: func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
					bldr.Watches(&corev1.Secret{}, reconcilers.EnqueueTracked(ctx))
					return nil
				},
				Sync: func(ctx context.Context, r *fixture.Resource) error {
					if state.tracks {
						key := types.NamespacedName{Namespace: r.Namespace, Name: "tracked"}
						err := reconcilers.RetrieveConfigOrDie(ctx).TrackAndGet(ctx, key, &corev1.Secret{})
						if client.IgnoreNotFound(err) != nil {
							return err
						}
					}
					return state.err
				},
			}
			log, lines := newLog(0)
			synctest.Test(t, func(t *testing.T) {
				config := reconcilers.NewConfig(mgr, nil, tc.period)
				config.Recorder, config.AllowStaleReads = w.Config.Recorder, true
				r := reconciler(&resourceReconciler{Config: config, Reconciler: sequence{
					&reconcilers.Periodic[*fixture.Resource]{Interval: 10000 * time.Hour, Reconciler: step},
				}})
				if !strings.HasPrefix(name, "the step") {
					r = &resourceReconciler{Config: config, Reconciler: step}
				}
				wantErr(t, nil, r.SetupWithManager(withLog(context.Background(), log), mgr))
				advice := strings.Contains(lines.all(), "the third argument of NewConfig, the sync period")
				equal(t, "advice at setup", tc.advice, advice)

				observers := func() int {
					observers, err := config.Tracker.GetObservers(
						&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "tracked"}},
					)
					wantErr(t, nil, err)
					return len(observers)
				}
				reconcile := func() {
					t.Helper()
					_, err := r.ReconcileManaged(withLog(context.Background(), log), testRequest)
					if err != nil && !errors.Is(err, errTest) {
						t.Fatal(err)
					}
				}
				reconcile()
				equal(t, "observers after a reconcile", 1, observers())
				time.Sleep(1000 * time.Hour)
				equal(t, "observers of an idle resource", 1, observers())
				if tc.change != nil {
					tc.change(state)
				}
				if tc.deleted {
					wantErr(t, nil, w.Server.Delete(context.Background(), newResource()))
				}
				reconcile()
				equal(t, "observers after the second reconcile", tc.want, observers())
			})
		})
	}
}
