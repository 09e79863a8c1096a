// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// loopWorld reconciles the test resource like a controller: after the RequeueAfter of the result, and immediately after
// the reconcile or another client has changed an object.
type loopWorld struct {
	*world
	reconcile func(ctx context.Context, req reconcilers.Request) (reconcilers.Result, error)
	// ran is the number of calls of the sub reconciler, and requests the number of calls of the root.
	ran, requests int
	// between runs after each call of the sub reconciler. It simulates other clients.
	between func()
	failed  int
	found   []string
	// conflicts are the events about fields that are changed back and forth.
	conflicts []string
	lines     *logSink
	began     time.Time
}

func newLoopWorld(t *testing.T, do work, change ...func(*reconcilers.Config)) *loopWorld {
	return newLoopWorldOn(newWorld(t, newResource(settled)), do, change...)
}

func newLoopWorldOn(w *world, do work, change ...func(*reconcilers.Config)) *loopWorld {
	l := &loopWorld{world: w}
	l.reconcile = (&resourceReconciler{
		Config: l.config(change...),
		Reconciler: sequence{failingSync(nil), &syncReconciler{
			Name: "Work",
			SyncWithResult: func(ctx context.Context, r *fixture.Resource) (reconcilers.Result, error) {
				l.works()
				return do(ctx, l, r)
			},
		}},
	}).ReconcileManaged
	return l
}

// config returns the config of a controller.
func (l *loopWorld) config(change ...func(*reconcilers.Config)) reconcilers.Config {
	config := configFor(l.world, newManager(l.t, l.world, newEventCache(l.Scheme)))
	for _, change := range change {
		change(&config)
	}
	return config
}

// works counts a call of the reconciler.
func (l *loopWorld) works() {
	l.ran++
	time.Sleep(5 * time.Millisecond)
}

// run makes requests for some time, or until no request is pending. It returns the number of calls of the sub
// reconciler.
func (l *loopWorld) run(long time.Duration) int {
	l.t.Helper()
	log, lines := newLog(0)
	l.lines = lines
	l.began = time.Now()
	before := l.ran
	for again := true; again && time.Since(l.began) < long; {
		again = false
		if l.requests++; l.requests > 2_500 {
			break // the test fails, so stop early
		}
		ran := l.ran
		result, err := l.reconcile(withLog(context.Background(), log), testRequest)
		for _, line := range l.Trace() {
			if event, ok := strings.CutPrefix(line, "event default/test Warning HotLoop: "); ok {
				l.found = append(l.found, event)
			}
			if event, ok := strings.CutPrefix(line, "event default/test Warning FieldConflict: "); ok {
				l.conflicts = append(l.conflicts, event)
			}
			verb, _, _ := strings.Cut(line, " ")
			again = again || slices.Contains([]string{"create", "update", "patch", "apply", "delete"}, verb)
		}
		if l.ran > ran && l.between != nil {
			l.between()
			again = true
		}
		switch {
		case err != nil:
			again = true
			time.Sleep(min(5*time.Millisecond<<min(l.failed, 20), time.Minute))
			l.failed++
		case !again && result.RequeueAfter > 0:
			again = true
			time.Sleep(result.RequeueAfter)
		}
	}
	return l.ran - before
}

// warnings returns the texts of the hot-loop events since the last call.
func (l *loopWorld) warnings() []string {
	found := l.found
	l.found = nil
	return found
}

type work = func(ctx context.Context, l *loopWorld, r *fixture.Resource) (reconcilers.Result, error)

// mirror copies the data of a ConfigMap into the status.
func mirror(ctx context.Context, r *fixture.Resource, name string) error {
	var cm corev1.ConfigMap
	key := types.NamespacedName{Namespace: r.Namespace, Name: name}
	if err := reconcilers.RetrieveConfigOrDie(ctx).Get(ctx, key, &cm); client.IgnoreNotFound(err) != nil {
		return err
	}
	r.Status.Fields = cm.Data
	return nil
}

// set writes the data of a ConfigMap if it differs.
func set(ctx context.Context, r *fixture.Resource, name string, data map[string]string) error {
	c := reconcilers.RetrieveConfigOrDie(ctx)
	cm := &corev1.ConfigMap{}
	err := c.Get(ctx, types.NamespacedName{Namespace: r.Namespace, Name: name}, cm)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return err
	case err != nil:
		cm.ObjectMeta = metav1.ObjectMeta{Namespace: r.Namespace, Name: name}
		cm.Data = data
		return c.Create(ctx, cm)
	case fmt.Sprint(cm.Data) == fmt.Sprint(data):
		return nil
	}
	cm.Data = data
	return c.Update(ctx, cm)
}

func number(l *loopWorld) map[string]string { return map[string]string{"nonce": fmt.Sprint(l.ran)} }

func TestHotLoop_IsDetectedAndDelayed(t *testing.T) {
	const step = "ResourceResourceReconciler.1.Work "
	for name, tc := range map[string]struct {
		do      work
		repeats string
		atMost  int
	}{
		"RequeueAfter: 1ns": {
			do: func(context.Context, *loopWorld, *fixture.Resource) (reconcilers.Result, error) {
				return reconcilers.Result{RequeueAfter: 1}, nil
			},
			repeats: step + "returns RequeueAfter 1ns",
		},
		"random content of a child": {
			do: func(ctx context.Context, l *loopWorld, r *fixture.Resource) (reconcilers.Result, error) {
				return reconcilers.Result{}, set(ctx, r, "child", number(l))
			},
			repeats: step + `updates ConfigMap default/child: data[nonce] (a new value in each of the last 100 writes)`,
		},
		"a time in the status": {
			do: func(_ context.Context, _ *loopWorld, r *fixture.Resource) (reconcilers.Result, error) {
				r.Status.Fields = map[string]string{"time": time.Now().Format(time.RFC3339Nano)}
				return reconcilers.Result{}, nil
			},
			repeats: `ResourceResourceReconciler updates status of Resource default/test: status.fields[time] ` +
				`(the current time in each of the last 100 writes)`,
		},
		"two values alternately": {
			do: func(ctx context.Context, l *loopWorld, r *fixture.Resource) (reconcilers.Result, error) {
				return reconcilers.Result{}, set(ctx, r, "child", map[string]string{"order": fmt.Sprint(l.ran % 2)})
			},
			repeats: step + `updates ConfigMap default/child: data[order]`,
		},
		"a child with a new name each time": {
			do: func(ctx context.Context, l *loopWorld, r *fixture.Resource) (reconcilers.Result, error) {
				return reconcilers.Result{}, set(ctx, r, fmt.Sprint("child-", l.ran), number(l))
			},
			repeats: step + "creates ConfigMap default/child-",
			atMost:  1020,
		},
		"new generations that the reconciler writes": {
			do: func(ctx context.Context, l *loopWorld, r *fixture.Resource) (reconcilers.Result, error) {
				changed := r.DeepCopy()
				changed.Spec.Fields = number(l)
				err := reconcilers.RetrieveConfigOrDie(ctx).Update(ctx, changed)
				r.SetResourceVersion(changed.GetResourceVersion())
				return reconcilers.Result{}, err
			},
			repeats: step + `updates Resource default/test: spec.fields[nonce] (a new value in each of the last 100 writes)`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLoopWorld(t, tc.do)
			synctest.Test(t, func(t *testing.T) {
				labels := map[string]string{"controller": "ResourceResourceReconciler", "cause": "self"}
				found := apitest.Counted(t, "trueup_hot_loops_total", labels)
				waits := apitest.Counted(t, "trueup_hot_loop_waits_total", labels)
				l.isDelayed(t, max(tc.atMost, 120), tc.repeats)
				line := slices.IndexFunc(l.lines.messages(), func(m string) bool { return strings.HasPrefix(m, "hot loop") })
				if line < 0 {
					t.Fatalf("no log line:\n%s", l.lines.all())
				}
				if got := apitest.Counted(t, "trueup_hot_loops_total", labels) - found; got != 1 {
					t.Errorf("%v hot loops counted, want 1", got)
				}
				if apitest.Counted(t, "trueup_hot_loop_waits_total", labels) <= waits {
					t.Error("no waits counted")
				}
			})
		})
	}
}

// isDelayed runs the reconciler for three minutes and expects one warning. The delay grows to one minute.
func (l *loopWorld) isDelayed(t *testing.T, atMost int, repeats string) {
	t.Helper()
	if ran := l.run(3 * time.Minute); ran < 100 || ran > atMost {
		t.Errorf("%d reconciles in three minutes, want at most %d", ran, atMost)
	}
	warnings := l.warnings()
	if len(warnings) != 1 {
		t.Fatalf("warnings: %q", warnings)
	}
	contains(t, warnings[0], "each reconcile triggered the next one; further reconciles are delayed. ")
	contains(t, warnings[0], repeats)
	if !strings.Contains(repeats, "last 100 writes") {
		lacks(t, warnings[0], "last 100 writes")
	}
	equal(t, "events about conflicts", nil, l.conflicts)
}

func TestHotLoop_IsNotDetectedForOtherTriggers(t *testing.T) {
	for name, tc := range map[string]struct {
		do      work
		between func(l *loopWorld)
		ran     int
		long    time.Duration // defaults to 1 second, enough for 200 reconciles
	}{
		"120 children, one by one": {
			do: func(ctx context.Context, l *loopWorld, r *fixture.Resource) (reconcilers.Result, error) {
				var children corev1.ConfigMapList
				c := reconcilers.RetrieveConfigOrDie(ctx)
				if err := c.List(ctx, &children); err != nil || len(children.Items) == 120 {
					return reconcilers.Result{}, err
				}
				r.Status.Fields = map[string]string{"created": fmt.Sprint(len(children.Items) + 1)}
				return reconcilers.Result{RequeueAfter: 1}, set(ctx, r, fmt.Sprint("child-", len(children.Items)), number(l))
			},
			ran: 121,
		},
		"a rollout of a child": {
			do: func(ctx context.Context, _ *loopWorld, r *fixture.Resource) (reconcilers.Result, error) {
				return reconcilers.Result{}, mirror(ctx, r, "child")
			},
			between: func(l *loopWorld) { l.changeByOtherClient("child") },
		},
		"a poll five times a second": {
			do: func(context.Context, *loopWorld, *fixture.Resource) (reconcilers.Result, error) {
				return reconcilers.Result{RequeueAfter: 200 * time.Millisecond}, nil
			},
			long: time.Minute,
		},
		"new generations": {
			do: func(_ context.Context, _ *loopWorld, r *fixture.Resource) (reconcilers.Result, error) {
				r.Status.Fields = r.Spec.Fields
				return reconcilers.Result{}, nil
			},
			between: func(l *loopWorld) { l.newGeneration() },
		},
		"failures": {
			do: func(ctx context.Context, l *loopWorld, r *fixture.Resource) (reconcilers.Result, error) {
				return reconcilers.Result{}, errors.Join(set(ctx, r, "child", number(l)), errTest)
			},
		},
		"allowed": {
			do: func(context.Context, *loopWorld, *fixture.Resource) (reconcilers.Result, error) {
				return reconcilers.Result{RequeueAfter: 1}, nil
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLoopWorld(t, tc.do, func(c *reconcilers.Config) { c.AllowHotLoops = name == "allowed" })
			synctest.Test(t, func(t *testing.T) {
				waits := apitest.Counted(t, "trueup_hot_loop_waits_total", nil)
				if tc.between != nil {
					l.between = func() { tc.between(l) }
				}
				if tc.long == 0 {
					tc.long = time.Second
				}
				ran := l.run(tc.long)
				if tc.ran > 0 && ran != tc.ran {
					t.Errorf("%d reconciles, want %d", ran, tc.ran)
				}
				equal(t, "warnings", nil, l.warnings())
				if got := apitest.Counted(t, "trueup_hot_loop_waits_total", nil) - waits; got > 0 {
					t.Errorf("%v requests were delayed, want none", got)
				}
			})
		})
	}
}

// changeByOtherClient changes a ConfigMap like another client.
func (l *loopWorld) changeByOtherClient(name string) {
	l.t.Helper()
	ctx := context.Background()
	cm := stored(l.world, newConfigMap(name))
	if cm == nil {
		cm = wanted(name)
		wantErr(l.t, nil, l.Server.Create(ctx, cm))
	}
	cm.Data = map[string]string{"value": fmt.Sprint(time.Now().UnixNano())}
	wantErr(l.t, nil, l.Server.Update(ctx, cm))
}

// newGeneration changes the spec like a user.
func (l *loopWorld) newGeneration() {
	l.t.Helper()
	r := stored(l.world, newResource())
	r.Spec.Fields = map[string]string{"generation": fmt.Sprint(r.Generation + 1)}
	wantErr(l.t, nil, l.Config.Update(context.Background(), r)) // the server of the world increments the generation
}

func TestHotLoop_ChangesByOtherClientsEndTheDelay(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(l *loopWorld)
		again  int // warnings
	}{
		"generation":              {change: (*loopWorld).newGeneration, again: 1},
		"an object that it reads": {change: func(l *loopWorld) { l.changeByOtherClient("other") }},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLoopWorld(t, func(ctx context.Context, l *loopWorld, r *fixture.Resource) (reconcilers.Result, error) {
				return reconcilers.Result{}, errors.Join(mirror(ctx, r, "other"), set(ctx, r, "child", number(l)))
			})
			synctest.Test(t, func(t *testing.T) {
				l.changeByOtherClient("other")
				l.run(3 * time.Minute)
				equal(t, "warnings", 1, len(l.warnings()))
				if ran := l.run(10 * time.Second); ran > 1 {
					t.Fatalf("%d reconciles in ten seconds, want a delay", ran)
				}
				tc.change(l)
				if ran := l.run(time.Second); ran < 50 {
					t.Errorf("%d reconciles after the change, want no delay", ran)
				}
				l.run(3 * time.Minute)
				equal(t, "warnings after the change", tc.again, len(l.warnings()))
			})
		})
	}
}

func TestHotLoop_DoesNotLogSecrets(t *testing.T) {
	l := newLoopWorld(t, func(ctx context.Context, l *loopWorld, r *fixture.Resource) (reconcilers.Result, error) {
		c := reconcilers.RetrieveConfigOrDie(ctx)
		secret := &corev1.Secret{}
		if err := c.Get(ctx, types.NamespacedName{Namespace: r.Namespace, Name: "db"}, secret); err != nil {
			return reconcilers.Result{}, err
		}
		secret.Data = map[string][]byte{"password": fmt.Appendf(nil, "s3cr3t-%d", l.ran)}
		return reconcilers.Result{}, c.Update(ctx, secret)
	})
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db"}}
	wantErr(t, nil, l.Server.Create(context.Background(), secret))
	synctest.Test(t, func(t *testing.T) {
		l.run(time.Minute)
		warnings := strings.Join(l.warnings(), "\n")
		contains(t, warnings, `updates Secret default/db: data[password]`)
		lacks(t, warnings+l.lines.all(), "s3cr3t")
	})
}
