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
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	clienttesting "k8s.io/client-go/testing"
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
	// ran is the number of calls of the subreconciler, and requests the number of calls of the root.
	ran, requests int
	// between runs after each call of the subreconciler. It simulates other clients.
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

// run makes requests for some time, or until no request is pending. It returns the number of calls of the
// subreconciler.
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

type aggregateWork = func(context.Context, *loopWorld, *corev1.ConfigMap) (*corev1.ConfigMap, reconcilers.Result, error)

// newAggregateLoop returns a world whose resource is a ConfigMap that an aggregate manages.
func newAggregateLoop(t *testing.T, do aggregateWork, given ...client.Object) *loopWorld {
	l := &loopWorld{world: newWorld(t, given...)}
	l.reconcile = newAggregate(l.world, func(r *aggregateReconciler) {
		r.Config = l.config()
		var desired *corev1.ConfigMap
		r.Reconciler = &configMapSync{
			SyncWithResult: func(ctx context.Context, r *corev1.ConfigMap) (result reconcilers.Result, err error) {
				l.works()
				desired, result, err = do(ctx, l, r)
				return result, err
			},
		}
		r.DesiredResource = func(context.Context, *corev1.ConfigMap) (*corev1.ConfigMap, error) { return desired, nil }
	}).ReconcileManaged
	return l
}

func TestHotLoop_OfAnAggregate(t *testing.T) {
	const step = "ConfigMapAggregateReconciler"
	existing := newConfigMap("test", orphan)
	for name, tc := range map[string]struct {
		do      aggregateWork
		given   []client.Object
		repeats string // none if empty
		noEvent bool   // a loop without a resource to record an event on
	}{
		"RequeueAfter: 1ns": {
			do: func(_ context.Context, _ *loopWorld, r *corev1.ConfigMap) (*corev1.ConfigMap, reconcilers.Result, error) {
				return r, reconcilers.Result{RequeueAfter: 1}, nil
			},
			given:   []client.Object{existing},
			repeats: step + ".SyncReconciler returns RequeueAfter 1ns",
		},
		"random content": {
			do: func(_ context.Context, l *loopWorld, r *corev1.ConfigMap) (*corev1.ConfigMap, reconcilers.Result, error) {
				r.Data = number(l)
				return r, reconcilers.Result{}, nil
			},
			// The history of a resource begins after its creation.
			repeats: step + " updates ConfigMap default/test: data[nonce] (a new value in each of the last 99 writes)",
		},
		"created and deleted alternately": {
			do: func(_ context.Context, l *loopWorld, r *corev1.ConfigMap) (*corev1.ConfigMap, reconcilers.Result, error) {
				if l.ran%2 == 0 {
					r = nil
				}
				return r, reconcilers.Result{}, nil
			},
			noEvent: true,
		},
		"RequeueAfter: 1ns without a resource": {
			do: func(context.Context, *loopWorld, *corev1.ConfigMap) (*corev1.ConfigMap, reconcilers.Result, error) {
				return nil, reconcilers.Result{RequeueAfter: 1}, nil
			},
			noEvent: true,
		},
		"steady content": {
			do: func(_ context.Context, _ *loopWorld, r *corev1.ConfigMap) (*corev1.ConfigMap, reconcilers.Result, error) {
				r.Data = map[string]string{"key": "value"}
				return r, reconcilers.Result{}, nil
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newAggregateLoop(t, tc.do, tc.given...)
			synctest.Test(t, func(t *testing.T) {
				labels := map[string]string{"controller": step}
				found := apitest.Counted(t, "trueup_hot_loops_total", labels)
				want := 1.0
				switch {
				case tc.repeats != "":
					l.isDelayed(t, 120, tc.repeats)
				case tc.noEvent:
					if ran := l.run(3 * time.Minute); ran < 100 || ran > 120 {
						t.Errorf("%d reconciles in three minutes, want at most 120", ran)
					}
				default:
					want = 0
					l.between = func() {}
					if ran := l.run(600 * time.Millisecond); ran < 115 {
						t.Errorf("%d reconciles in 600 ms, want no delay", ran)
					}
					equal(t, "warnings", nil, l.warnings())
				}
				if got := apitest.Counted(t, "trueup_hot_loops_total", labels) - found; got != want {
					t.Errorf("%v hot loops are counted, want %v", got, want)
				}
			})
		})
	}
}

// applied returns a reconciler that applies a ConfigMap on the server, with a patch or with an apply configuration.
func applied(patch bool, data func(l *loopWorld) map[string]string) work {
	return func(ctx context.Context, l *loopWorld, r *fixture.Resource) (reconcilers.Result, error) {
		c := reconcilers.RetrieveConfigOrDie(ctx)
		if !patch {
			return reconcilers.Result{}, c.Apply(ctx, corev1apply.ConfigMap("child", r.Namespace).WithData(data(l)),
				client.ForceOwnership, client.FieldOwner("test"))
		}
		cm := wanted("child")
		cm.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		cm.Data = data(l)
		//nolint:staticcheck // users still use it
		return reconcilers.Result{}, c.Patch(ctx, cm, client.Apply, client.ForceOwnership, client.FieldOwner("test"))
	}
}

func TestHotLoop_OfServerSideApply(t *testing.T) {
	steady := func(*loopWorld) map[string]string { return map[string]string{"key": "value"} }
	for name, tc := range map[string]struct {
		do      work
		repeats string // none if empty
	}{
		"patch, random content": {
			do: applied(true, number), repeats: "ResourceResourceReconciler.1.Work patches ConfigMap default/child",
		},
		"apply, random content": {
			do: applied(false, number), repeats: "ResourceResourceReconciler.1.Work applies ConfigMap default/child",
		},
		"patch, steady content": {do: applied(true, steady)},
		"apply, steady content": {do: applied(false, steady)},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLoopWorldOn(newWorldOn(t, newApplyingTracker, newResource(settled)), tc.do)
			synctest.Test(t, func(t *testing.T) {
				if tc.repeats != "" {
					l.isDelayed(t, 120, tc.repeats)
					return
				}
				// An object that the reconciler does not read triggers the reconciles.
				l.between = func() {}
				if ran := l.run(600 * time.Millisecond); ran < 115 {
					t.Errorf("%d reconciles in 600 ms, want no delay", ran)
				}
				equal(t, "warnings", nil, l.warnings())
			})
		})
	}
}

// applyingTracker is the store of a server that supports server-side apply of ConfigMaps. Like a server, and unlike
// client-go's tracker, it stores nothing if an apply changes nothing.
type applyingTracker struct{ clienttesting.ObjectTracker }

func newApplyingTracker(_ clienttesting.ObjectScheme, decoder runtime.Decoder) clienttesting.ObjectTracker {
	// A scheme with fewer kinds is faster, see newWorldOn.
	kinds := runtime.NewScheme()
	kinds.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.ConfigMap{})
	kinds.AddKnownTypes(fixture.GroupVersion, &fixture.Resource{})
	converter := managedfields.NewDeducedTypeConverter() // creating a converter with schemas takes a second
	return applyingTracker{clienttesting.NewFieldManagedObjectTracker(kinds, decoder, converter)}
}

func (t applyingTracker) Apply(
	gvr schema.GroupVersionResource, configuration runtime.Object, ns string, opts ...metav1.PatchOptions,
) error {
	name := configuration.(client.Object).GetName()
	before, _ := t.Get(gvr, ns, name)
	if err := t.ObjectTracker.Apply(gvr, configuration, ns, opts...); err != nil || before == nil {
		return err
	}
	after, err := t.Get(gvr, ns, name)
	if err != nil || !equality.Semantic.DeepEqual(before.(*corev1.ConfigMap).Data, after.(*corev1.ConfigMap).Data) {
		return err
	}
	return t.Update(gvr, before, ns)
}
