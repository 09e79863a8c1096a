// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
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

// loops are the reconcilers that run several steps. Each of them runs step repeatedly.
var loops = map[string]func(step subReconciler) subReconciler{
	"Sequence": func(step subReconciler) subReconciler { return sequence{step, step, step, step} },
	"Always":   func(step subReconciler) subReconciler { return always{step, step, step, step} },
	"While":    func(step subReconciler) subReconciler { return &while{Condition: isTrue, Reconciler: step} },
	"ForEach": func(step subReconciler) subReconciler {
		return &forEach{Items: items("a", "b", "c", "d"), Reconciler: step}
	},
}

func TestInterrupted(t *testing.T) {
	minute := reconcilers.Result{RequeueAfter: time.Minute}
	for name, loop := range loops {
		run := func(t *testing.T, ctx context.Context, second func()) (calls int, err error) {
			t.Helper()
			result, err := loop(&syncReconciler{SyncWithResult: func(
				context.Context, *fixture.Resource,
			) (reconcilers.Result, error) {
				calls++
				if calls == 2 {
					second()
				}
				return minute, nil
			}}).Reconcile(reconcilers.WithStash(ctx), newResource())
			if calls > 0 {
				equal(t, "result", minute, result)
			}
			return calls, err
		}
		t.Run(name+", canceled between two steps", func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			calls, err := run(t, ctx, func() { cancel(errTest) })
			equal(t, "calls", 2, calls)
			for _, want := range []error{errTest, reconcilers.ErrQuiet, reconcilers.ErrSkipStatusUpdate} {
				wantErr(t, want, err)
			}
			if errors.Is(err, reconcilers.ErrHaltSubReconcilers) {
				t.Error("a shutdown must not halt, because the generation would be marked as observed")
			}
		})
		t.Run(name+", deadline exceeded between two steps", func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			calls, err := run(t, ctx, func() { <-ctx.Done() })
			equal(t, "ran after the deadline", false, calls > 2)
			wantErr(t, context.DeadlineExceeded, err)
			if errors.Is(err, reconcilers.ErrQuiet) {
				t.Errorf("an exceeded deadline must not be quiet, got %v", err)
			}
		})
		t.Run(name+", canceled before the first step", func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			calls, err := run(t, ctx, func() {})
			equal(t, "calls", 0, calls)
			wantErr(t, context.Canceled, err)
			wantErr(t, reconcilers.ErrQuiet, err)
		})
		if name == "While" {
			continue // it has no last step
		}
		t.Run(name+", canceled in the last step", func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			calls := 0
			_, err := loop(&syncReconciler{Sync: func(context.Context, *fixture.Resource) error {
				if calls++; calls == 4 {
					cancel()
				}
				return nil
			}}).Reconcile(reconcilers.WithStash(ctx), newResource())
			wantErr(t, nil, err)
		})
	}
}

func TestInterrupted_ShutdownIsNotReported(t *testing.T) {
	for name, loop := range loops {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newResource(settled))
			log, lines := newLog(0)
			ctx, cancel := context.WithCancel(withLog(context.Background(), log))
			defer cancel()
			calls := 0
			r := &resourceReconciler{Config: w.Config, Reconciler: loop(&syncReconciler{Sync: func(
				_ context.Context, r *fixture.Resource,
			) error {
				calls++
				r.Status.Fields = map[string]string{"half": "done"}
				cancel()
				return nil
			}})}
			result, err := r.Reconcile(ctx, testRequest)
			wantErr(t, nil, err)
			equal(t, "result", requeue, result)
			equal(t, "calls", 1, calls)
			equal(t, "API calls and events", []string{"get Resource default/test"}, w.Trace())
			equal(t, "log", "", lines.all())
		})
	}
}

func TestInterrupted_DoesNotSilenceEarlierErrors(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := always{returning(reconcilers.Result{}, errTest), &syncReconciler{Sync: func(
		context.Context, *fixture.Resource,
	) error {
		cancel()
		return nil
	}}, never(t)}
	_, err := r.Reconcile(ctx, newResource())
	wantErr(t, errTest, err)
	if errors.Is(err, reconcilers.ErrQuiet) {
		t.Errorf("an error is silenced by a shutdown: %v", err)
	}
}

func TestInterrupted_ByUserCode(t *testing.T) {
	w := newWorld(t, newResource(settled))
	r := &resourceReconciler{Config: w.Config, Reconciler: &reconcilers.Advice[*fixture.Resource]{
		// The mistake: the context has already ended when Before returns it.
		Before: func(ctx context.Context, _ *fixture.Resource) (context.Context, reconcilers.Result, error) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			return ctx, reconcilers.Result{}, nil
		},
		Reconciler: sequence{returning(reconcilers.Result{}, nil)},
	}}
	_, err := r.Reconcile(context.Background(), testRequest)
	wantErr(t, context.Canceled, err)
}

// An object of another owner has the name of the child. Its deletion must trigger the parent, although the parent does
// not own it.
func TestSetup_EventOfAConflictingObjectTriggersTheParent(t *testing.T) {
	parent := newResource(settled)
	blocker := newConfigMap("child")
	blocker.OwnerReferences = nil
	w := newWorld(t, parent, blocker)
	events := newEventCache(w.Scheme)
	mgr := newManager(t, w, events)
	calls := make(requests, 10)
	r := &resourceReconciler{Config: configFor(w, mgr), Reconciler: sequence{newChildReconciler(w), notify(calls)}}
	wantErr(t, nil, r.SetupWithManager(context.Background(), mgr))
	start(t, mgr)

	events.changed(parent)
	calls.next(t, "the first event")
	if w.Count("track ConfigMap default/child for default/test") == 0 {
		t.Fatalf("the conflicting object is not tracked: %v", w.Trace())
	}
	wantErr(t, nil, w.Server.Delete(context.Background(), blocker))
	events.changed(blocker)
	calls.next(t, "the conflicting object was deleted")
	created := stored(w, blocker)
	if created == nil || !metav1.IsControlledBy(created, parent) {
		t.Errorf("the child was not created: %v", created)
	}
}
