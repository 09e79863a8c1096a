// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"fmt"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// keep writes a value of a ConfigMap if it differs.
func keep(value string) work {
	return func(ctx context.Context, _ *loopWorld, r *fixture.Resource) (reconcilers.Result, error) {
		return reconcilers.Result{}, set(ctx, r, "child", map[string]string{"replicas": value})
	}
}

// overwrite changes the value of the ConfigMap like another client.
func (l *loopWorld) overwrite() {
	l.t.Helper()
	cm := stored(l.world, newConfigMap("child"))
	cm.Data = map[string]string{"replicas": "10"}
	wantErr(l.t, nil, l.Server.Update(context.Background(), cm, client.FieldOwner("autoscaler")))
}

// numbers are the hashes in a message, which are different in each process.
var numbers = regexp.MustCompile(`#[0-9a-f]{4}`)

func (l *loopWorld) wantConflict(want string) {
	l.t.Helper()
	if len(l.conflicts) != 1 {
		l.t.Fatalf("events about conflicts: %q, want one", l.conflicts)
	}
	equal(l.t, "event", want, numbers.ReplaceAllString(l.conflicts[0], "#"))
}

// every calls the reconciler after each pause, n times, and other in between.
func (l *loopWorld) every(pause time.Duration, n int, other func(i int)) {
	for i := range n {
		other(i)
		l.run(time.Second)
		time.Sleep(pause)
	}
}

func TestIsItLooping_AnotherControllerWritesTheSameField(t *testing.T) {
	for name, tc := range map[string]struct {
		run     func(l *loopWorld)
		within  string
		calls   int // at most
		managed bool
		ours    string
		other   string
	}{
		"at once": {
			run: func(l *loopWorld) {
				l.between = func() { l.overwrite() }
				l.run(10 * time.Minute)
			},
			within: "0s", calls: 25,
			ours: "an unknown field manager", other: "an unknown field manager",
		},
		"every ten minutes": {
			run: func(l *loopWorld) {
				l.run(time.Second)
				l.every(10*time.Minute, 8, func(int) { l.overwrite() })
			},
			within: "50m0s", calls: 20,
			ours: "an unknown field manager", other: "an unknown field manager",
		},
		"every ten hours, on a server with managed fields": {
			run: func(l *loopWorld) {
				l.run(time.Second)
				l.every(10*time.Hour, 8, func(int) { l.overwrite() })
			},
			managed: true, within: "50h0m0s", calls: 20, ours: `"ours" (Update)`, other: `"autoscaler" (Update)`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var w *world
			if w = newWorld(t, newResource(settled)); tc.managed {
				w = newWorldOn(t, newApplyingTracker, newResource(settled))
			}
			w.Config.Client = client.WithFieldOwner(w.Config.Client, "ours")
			l := newLoopWorldOn(w, keep("1"))
			synctest.Test(t, func(t *testing.T) {
				labels := map[string]string{"controller": "ResourceResourceReconciler", "cause": "writer"}
				found := apitest.Counted(t, "trueup_hot_loops_total", labels)
				waits := apitest.Counted(t, "trueup_hot_loop_waits_total", labels)
				tc.run(l)
				if l.ran > tc.calls {
					t.Errorf("%d reconciles, want at most %d", l.ran, tc.calls)
				}
				l.wantConflict(fmt.Sprintf("data[replicas] of ConfigMap default/child changed back and forth 5 times in %s: "+
					"%s writes a string of 1 bytes # in step ResourceResourceReconciler.1.Work, "+
					"%s writes a string of 2 bytes #; further reconciles are delayed", tc.within, tc.ours, tc.other))
				equal(t, "hot loops", nil, l.warnings())
				equal(t, "counted", 1, apitest.Counted(t, "trueup_hot_loops_total", labels)-found)
				if apitest.Counted(t, "trueup_hot_loop_waits_total", labels) <= waits {
					t.Error("no request was delayed")
				}
			})
		})
	}
}

// A webhook resets the value, and the reconciler sends it in each reconcile.
func TestIsItLooping_AWebhookChangesTheField(t *testing.T) {
	w := newWorld(t, newResource(settled))
	l := newLoopWorldOn(w, keep("1"))
	w.Admit = func(obj client.Object) {
		if cm, ok := obj.(*corev1.ConfigMap); ok {
			cm.Data = map[string]string{"replicas": "10"}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		labels := map[string]string{"controller": "ResourceResourceReconciler", "cause": "refused"}
		found := apitest.Counted(t, "trueup_hot_loops_total", labels)
		for range 10 {
			l.run(time.Nanosecond)
			time.Sleep(time.Minute)
		}
		l.wantConflict("data[replicas] of ConfigMap default/child is not stored as sent, 5 times in 5m0s: " +
			"an unknown field manager sends a string of 1 bytes # in step ResourceResourceReconciler.1.Work, " +
			"the API server stores a string of 2 bytes #, probably because of a mutating webhook; " +
			"further reconciles are delayed")
		equal(t, "counted", 1, apitest.Counted(t, "trueup_hot_loops_total", labels)-found)
	})
}

// The condition is set while the conflict lasts, and removed an hour later. No further event triggers that.
func TestIsItLooping_AsACondition(t *testing.T) {
	l := newLoopWorld(t, keep("1"), func(c *reconcilers.Config) { c.LoopCondition = "Looping" })
	looping := func() *metav1.Condition {
		return meta.FindStatusCondition(stored(l.world, newResource()).Status.Conditions, "Looping")
	}
	synctest.Test(t, func(t *testing.T) {
		l.run(time.Second)
		l.every(10*time.Minute, 5, func(int) { l.overwrite() })
		if got := looping(); got != nil {
			t.Fatalf("condition before the conflict: %+v", got)
		}
		l.every(10*time.Minute, 2, func(int) { l.overwrite() })
		got := looping()
		if got == nil || got.Status != metav1.ConditionTrue || got.Reason != "FieldConflict" || len(l.conflicts) != 1 ||
			got.Message != l.conflicts[0] {
			t.Fatalf("condition: got %+v, want the event %q", got, l.conflicts)
		}
		l.run(30 * time.Minute)
		if looping() == nil {
			t.Error("the condition was removed within an hour")
		}
		l.run(time.Hour)
		if got := looping(); got != nil {
			t.Errorf("condition an hour after the conflict: %+v", got)
		}
	})
}

func TestIsItLooping_AsAConditionOfATypeWithoutConditions(t *testing.T) {
	r := &reconcilers.ResourceReconciler[*fixture.ResourceNoStatus]{
		Reconciler: reconcilers.Sequence[*fixture.ResourceNoStatus]{}, Config: reconcilers.Config{LoopCondition: "Looping"},
	}
	wantText(t, `ResourceReconciler "ResourceNoStatusResourceReconciler" must have a type with Status.Conditions of type `+
		`[]metav1.Condition to use Config.LoopCondition`, r.Validate(context.Background()))
}

func TestIsItLooping_DoesNotShowValuesOfSecrets(t *testing.T) {
	l := newLoopWorld(t, func(ctx context.Context, _ *loopWorld, r *fixture.Resource) (reconcilers.Result, error) {
		c := reconcilers.RetrieveConfigOrDie(ctx)
		secret := &corev1.Secret{}
		if err := c.Get(ctx, types.NamespacedName{Namespace: r.Namespace, Name: "db"}, secret); err != nil {
			return reconcilers.Result{}, err
		}
		if string(secret.Data["password"]) == "s3cr3t" {
			return reconcilers.Result{}, nil
		}
		secret.Data = map[string][]byte{"password": []byte("s3cr3t")}
		return reconcilers.Result{}, c.Update(ctx, secret)
	})
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db"}}
	wantErr(t, nil, l.Server.Create(context.Background(), secret))
	synctest.Test(t, func(t *testing.T) {
		l.every(time.Minute, 8, func(int) {
			other := stored(l.world, secret)
			other.Data = map[string][]byte{"password": []byte("anoth3r")}
			wantErr(t, nil, l.Server.Update(context.Background(), other))
		})
		l.wantConflict("data[password] of Secret default/db changed back and forth 5 times in 5m0s: " +
			"an unknown field manager writes a value # in step ResourceResourceReconciler.1.Work, " +
			"an unknown field manager writes a value #; further reconciles are delayed")
		lacks(t, l.conflicts[0]+l.lines.all(), "s3cr3t")
		lacks(t, l.conflicts[0]+l.lines.all(), "anoth3r")
	})
}
