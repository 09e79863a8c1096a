// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge/internal/inject"
)

// keeper sets up a program that keeps objects with a finalizer until released returns true. It looks again whenever
// an object of another kind changes.
func keeper[T client.Object](
	name string, kind T, released func(ctx context.Context, c client.Client, obj T) (bool, error), others ...client.Object,
) func(manager.Manager) error {
	return setupOf(name, kind, func(ctx context.Context, c client.Client, obj T) (reconcile.Result, error) {
		before := obj.DeepCopyObject().(T)
		if obj.GetDeletionTimestamp() == nil {
			if !controllerutil.AddFinalizer(obj, "example.com/"+name) {
				return done, nil
			}
			return done, c.Patch(ctx, obj, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		}
		ok, err := released(ctx, c, obj)
		if err != nil || !ok || !controllerutil.RemoveFinalizer(obj, "example.com/"+name) {
			return done, err
		}
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		return done, client.IgnoreNotFound(c.Patch(ctx, obj, patch))
	}, others...)
}

// absent returns a function that reports whether an object of the same name does not exist. If always is set, it does
// not look.
func absent[T client.Object](kind client.Object, always bool) func(context.Context, client.Client, T) (bool, error) {
	return func(ctx context.Context, c client.Client, obj T) (bool, error) {
		if always {
			return true, nil
		}
		err := c.Get(ctx, client.ObjectKeyFromObject(obj), kind.DeepCopyObject().(client.Object))
		return apierrs.IsNotFound(err), client.IgnoreNotFound(err)
	}
}

// ownedBy returns an object of the same name as its owner.
func ownedBy[T client.Object](owner client.Object, obj T) T {
	obj.SetNamespace(owner.GetNamespace())
	obj.SetName(owner.GetName())
	_ = controllerutil.SetControllerReference(owner, obj, scheme.Scheme)
	return obj
}

type deadlockCase struct {
	name string
	make func(buggy bool) Scenario
	// wants are parts of the message and the details.
	wants []string
}

// deadlocks are scenarios whose objects wait for each other to be deleted: each with a bug and without it.
var deadlocks = []deadlockCase{
	{"two finalizers", func(buggy bool) Scenario {
		configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
		return Scenario{
			Setup: keeper("one", &corev1.Secret{}, absent[*corev1.Secret](&corev1.ConfigMap{}, false), &corev1.ConfigMap{}),
			Programs: []Program{{Name: "second", Setup: keeper(
				"two", &corev1.ConfigMap{}, absent[*corev1.ConfigMap](&corev1.Secret{}, !buggy), &corev1.Secret{},
			)}},
			Steps: Steps(
				Apply(newSecret("a")), Settle(), Apply(configMap), Settle(), Delete(newSecret("a")), Delete(configMap), Settle(),
			),
		}
	}, []string{
		"ConfigMap default/a and Secret default/a wait for each other",
		"Secret default/a is held by the finalizer example.com/one of manager, waits for ConfigMap default/a",
		"ConfigMap default/a is held by the finalizer example.com/two of second, waits for Secret default/a",
	}},
	{"an owner that deletes what waits for it", func(buggy bool) Scenario {
		return Scenario{
			Setup: setups(
				keeper("one", &corev1.Secret{}, func(ctx context.Context, c client.Client, secret *corev1.Secret) (bool, error) {
					err := c.Delete(ctx, ownedBy(secret, &corev1.ConfigMap{}))
					return apierrs.IsNotFound(err), client.IgnoreNotFound(err)
				}, &corev1.ConfigMap{}),
				copyAll("creator", &corev1.Secret{}, func(ctx context.Context, c client.Client, secret *corev1.Secret) error {
					if len(secret.Finalizers) == 0 {
						return nil
					}
					return createOrChange(ctx, c, ownedBy(secret, &corev1.ConfigMap{}), func(*corev1.ConfigMap) {})
				}, &corev1.ConfigMap{}),
			),
			Programs: []Program{{Name: "second", Setup: keeper(
				"two", &corev1.ConfigMap{}, absent[*corev1.ConfigMap](&corev1.Secret{}, !buggy), &corev1.Secret{},
			)}},
			Without: map[Fault]string{FaultChildDeleted: "the config map belongs to the secret for as long as that exists"},
		}
	}, []string{
		"ConfigMap default/a and Secret default/a wait for each other",
		"Secret default/a is held by the finalizer example.com/one of manager, waits for ConfigMap default/a",
	}},
	{"a deletion in the foreground", func(buggy bool) Scenario {
		return Scenario{
			Setup: copyAll("creator", &corev1.Secret{}, func(ctx context.Context, c client.Client, secret *corev1.Secret) error {
				live := &unstructured.Unstructured{} // is not read from the cache
				live.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
				if err := c.Get(ctx, client.ObjectKeyFromObject(secret), live); err != nil || live.GetDeletionTimestamp() != nil {
					return client.IgnoreNotFound(err)
				}
				return createOrChange(ctx, c, ownedBy(secret, &corev1.ConfigMap{}), func(*corev1.ConfigMap) {})
			}, &corev1.ConfigMap{}),
			Programs: []Program{{Name: "second", Setup: keeper(
				"two", &corev1.ConfigMap{}, absent[*corev1.ConfigMap](&corev1.Secret{}, !buggy), &corev1.Secret{},
			)}},
			Steps: Steps(Apply(newSecret("a")), Settle(), Do("delete in the foreground", func(
				ctx context.Context, c client.Client,
			) error {
				return c.Delete(ctx, newSecret("a"), client.PropagationPolicy(metav1.DeletePropagationForeground))
			}), Settle()),
			Without: map[Fault]string{FaultChildDeleted: "the config map belongs to the secret for as long as that exists"},
		}
	}, []string{
		"Secret default/a is held by the finalizer foregroundDeletion of the garbage collector, waits for ConfigMap",
		"ConfigMap default/a is held by the finalizer example.com/two of second, waits for Secret default/a",
	}},
	{"objects that are not primary", func(buggy bool) Scenario {
		configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
		return Scenario{
			For: &corev1.Service{},
			Setup: setups(
				setupOf("none", &corev1.Service{}, func(context.Context, client.Client, *corev1.Service) (reconcile.Result, error) {
					return done, nil
				}),
				keeper("one", &corev1.Secret{}, absent[*corev1.Secret](&corev1.ConfigMap{}, false), &corev1.ConfigMap{}),
				keeper("two", &corev1.ConfigMap{}, absent[*corev1.ConfigMap](&corev1.Secret{}, !buggy), &corev1.Secret{}),
			),
			Steps: Steps(
				Apply(newSecret("a")), Apply(configMap), Settle(), Delete(newSecret("a")), Delete(configMap), Settle(),
			),
		}
	}, []string{"ConfigMap default/a and Secret default/a wait for each other"}},
}

// TestDeadlocks finds finalizers that wait for each other, and nothing in the correct twin.
func TestDeadlocks(t *testing.T) {
	for _, c := range deadlocks {
		t.Run(c.name, func(t *testing.T) {
			f := foundIn(t, inDefaults(c.make(true)))
			if f == nil {
				t.Fatal("nothing was found")
			}
			if f.Violation.Cause != CauseDeadlock || f.Hint == "" {
				t.Errorf("the cause is %s, and the hint %q", f.Violation.Cause, f.Hint)
			}
			text := f.Violation.Message + "\n" + strings.Join(f.Violation.Details, "\n")
			for _, want := range c.wants {
				if !strings.Contains(text, want) {
					t.Errorf("want %q in:\n%s", want, f)
				}
			}
			converges(t, inDefaults(c.make(false)), Options{Seed: 1})
		})
	}
}

// TestFinalizersWithoutController deletes two children that were created with a finalizer of a controller that the
// scenario does not have. They do not wait for each other: they wait for that controller.
func TestFinalizersWithoutController(t *testing.T) {
	const finalizer = "example.com/external"
	scenario := func(waits bool, actors ...Actor) Scenario {
		s := secretScenario(func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
			deleted := secret.DeletionTimestamp != nil
			if !deleted && controllerutil.AddFinalizer(secret, kept) {
				return done, e.Client.Update(ctx, secret)
			}
			remaining := 0
			for _, name := range []string{"first", "second"} {
				child := configMapOf(secret, true)
				child.Name, child.Finalizers = name, []string{finalizer}
				if !deleted {
					if err := ensure(ctx, e, child); err != nil {
						return done, err
					}
					continue
				}
				err := e.Client.Get(ctx, client.ObjectKeyFromObject(child), child)
				if err == nil {
					remaining++
					err = e.Client.Delete(ctx, child)
				}
				if client.IgnoreNotFound(err) != nil {
					return done, err
				}
			}
			if !deleted || waits && remaining > 0 {
				return done, nil
			}
			return done, removeFinalizer(ctx, e, secret)
		})
		s.Steps, s.World = Lifecycle(newSecret("a")), actors
		return s
	}
	releaser := Actor{Name: "releaser", For: &corev1.ConfigMap{}, Act: func(
		ctx context.Context, c client.Client, obj client.Object,
	) error {
		if obj.GetDeletionTimestamp() == nil || !controllerutil.RemoveFinalizer(obj, finalizer) {
			return nil
		}
		return c.Update(ctx, obj)
	}}
	const missing = "; no program of this scenario removes finalizer " + finalizer +
		" of kind ConfigMap: add its controller or an actor"
	for name, c := range map[string]struct {
		scenario Scenario
		want     string
	}{
		"an owner that waits": {scenario(true), "Secret default/a still exists; finalizers: " + kept + missing},
		"an owner that does not wait": {
			scenario(false), "ConfigMap default/first is left over: its owner no longer exists" + missing,
		},
		"with an actor": {scenario: scenario(true, releaser)},
	} {
		t.Run(name, func(t *testing.T) {
			p := mustPlan(t, c.scenario)
			o, ok := p.refer(t)
			switch v, _ := o.First(); {
			case ok != (c.want == ""):
				t.Errorf("got %v, want %q", o.Violations, c.want)
			case v.Message != c.want || !ok && v.Oracle != OracleDeletion:
				t.Errorf("got %s, want %q", v, c.want)
			}
		})
	}
}

// TestRelistHidesNothing deletes what a program has created, while its cache is disconnected, and before another
// program writes it: only that one receives an error. The list after that must not hide it.
func TestRelistHidesNothing(t *testing.T) {
	at := slices.IndexFunc(deadlocks, func(c deadlockCase) bool { return c.name == "a deletion in the foreground" })
	p, _ := referred(t, inDefaults(deadlocks[at].make(false)))
	s, _, err := inject.Decode(
		"v1:1:relist@event+added:ConfigMap:default/a:1,deleted@second:patch:ConfigMap:default/a:1",
	)
	if err != nil {
		t.Fatal(err)
	}
	if o := p.try(t, s, nil); len(o.Violations) > 0 || o.Injected != 2 {
		t.Errorf("injected %d faults, found %v", o.Injected, o.Violations)
	}
}
