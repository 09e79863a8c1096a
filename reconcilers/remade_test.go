// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// creates creates a ConfigMap if it does not exist, and drops deletes it if it exists.
func creates(ctx context.Context, r *fixture.Resource) error { return set(ctx, r, "child", nil) }

func drops(ctx context.Context, _ *fixture.Resource) error {
	c, child := reconcilers.RetrieveConfigOrDie(ctx), newConfigMap("child")
	if err := c.Get(ctx, client.ObjectKeyFromObject(child), child); err != nil {
		return client.IgnoreNotFound(err)
	}
	return c.Delete(ctx, child)
}

func onlyDo(do func(context.Context, *fixture.Resource) error) work {
	return func(ctx context.Context, _ *loopWorld, r *fixture.Resource) (reconcilers.Result, error) {
		return reconcilers.Result{}, do(ctx, r)
	}
}

func TestIsItLooping_AnObjectIsCreatedAndDeleted(t *testing.T) {
	const step = "step ResourceResourceReconciler.1.Work"
	const second = time.Second
	others := 0
	create := func(l *loopWorld) {
		others++
		child := newConfigMap("child")
		child.ResourceVersion = ""
		child.UID = types.UID(fmt.Sprintf("other-%d", others))
		err := l.Server.Create(context.Background(), child, client.FieldOwner("other"))
		if !apierrs.IsAlreadyExists(err) { // its deletion is delayed
			wantErr(l.t, nil, err)
		}
	}
	remove := func(l *loopWorld) {
		wantErr(l.t, nil, client.IgnoreNotFound(l.Server.Delete(context.Background(), newConfigMap("child"))))
	}
	for name, tc := range map[string]struct {
		do    work
		other func(l *loopWorld)
		pause time.Duration
		// managed reports whether the server tracks managed fields.
		managed     bool
		cause, want string
	}{
		"by two steps": {
			do: onlyDo(func(ctx context.Context, r *fixture.Resource) error {
				_, err := sequence{
					&syncReconciler{Name: "Makes", Sync: creates}, &syncReconciler{Name: "Drops", Sync: drops},
				}.Reconcile(ctx, r)
				return err
			}),
			other: func(*loopWorld) {}, pause: second, cause: "self",
			want: "created 5 times in 0s: " + step + ".0.Makes creates it, " + step + ".1.Drops deletes it",
		},
		"another client deletes it": {
			do: onlyDo(creates), other: remove, pause: second, cause: "writer",
			want: "created 5 times in 4s: " + step + " creates it, another client deletes it",
		},
		"another client creates it": {
			do: onlyDo(drops), other: create, pause: second, cause: "writer",
			want: "deleted 5 times in 4s: another client creates it, " + step + " deletes it",
		},
		"another client creates it, on a server with managed fields": {
			do: onlyDo(drops), other: create, pause: second, managed: true, cause: "writer",
			want: `deleted 5 times in 4s: "other" (Update) creates it, ` + step + " deletes it",
		},
		"seldom": {do: onlyDo(creates), other: remove, pause: 20 * second, cause: "writer"},
		"with new generations": {
			do: onlyDo(creates), pause: second, cause: "writer",
			other: func(l *loopWorld) { remove(l); l.newGeneration() },
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newResource(settled))
			if tc.managed {
				w = newWorldOn(t, newApplyingTracker, newResource(settled))
			}
			l := newLoopWorldOn(w, tc.do, func(c *reconcilers.Config) { c.AllowStaleReads = true })
			synctest.Test(t, func(t *testing.T) {
				labels := map[string]string{"controller": "ResourceResourceReconciler", "cause": tc.cause}
				counted := apitest.Counted(t, "trueup_hot_loops_total", labels)
				l.every(tc.pause, 8, func(int) { tc.other(l) })
				var want []string
				if tc.want != "" {
					want = []string{"ConfigMap default/child was " + tc.want + "; further reconciles are delayed"}
				}
				equal(t, "events", want, l.warnings())
				equal(t, "counted", float64(len(want)), apitest.Counted(t, "trueup_hot_loops_total", labels)-counted)
			})
		})
	}
}
