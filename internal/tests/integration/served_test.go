// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"

	"trueup.dev/internal/ctrlfields"
	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/internal/testkit/await"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/operator"
	"trueup.dev/reconcilers"
)

// seen holds what the last reconcile of each resource has found.
type seen struct {
	mu    sync.Mutex
	found map[string]string
}

func (s *seen) set(name, found string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.found == nil {
		s.found = map[string]string{}
	}
	s.found[name] = found
}

// all returns an error unless the last reconcile of n resources has found this.
func (s *seen) all(n int, want string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	count, example := 0, ""
	for name, found := range s.found {
		if found == want {
			count++
		} else {
			example = fmt.Sprintf("%s has %q", name, found)
		}
	}
	if count != n {
		return fmt.Errorf("%d resources have %q, want %d: %s", count, want, n, example)
	}
	return nil
}

// comingAndGoing is a kind whose CustomResourceDefinition is installed and deleted while the manager runs.
type comingAndGoing struct {
	*env
	definitions client.Client
	kind        schema.GroupVersionKind
	plural      string
}

func newComingAndGoing(e *env, group string) *comingAndGoing {
	scheme := apiruntime.NewScheme()
	e.Must(apiextensionsv1.AddToScheme(scheme))
	definitions, err := client.New(e.RESTConfig(), client.Options{Scheme: scheme})
	e.Must(err)
	c := &comingAndGoing{
		env: e, definitions: definitions, plural: "guests",
		kind: schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Guest"},
	}
	e.Cleanup(func() {
		e.Must(client.IgnoreNotFound(definitions.Delete(context.Background(), crd(c.kind, c.plural))))
	})
	return c
}

func (c *comingAndGoing) of(version string) schema.GroupVersionKind {
	return c.kind.GroupKind().WithVersion(version)
}

func (c *comingAndGoing) install(version string) {
	c.Helper()
	c.Must(c.definitions.Create(c.Context(), crd(c.of(version), c.plural)))
}

func (c *comingAndGoing) uninstall() {
	c.Helper()
	definition := crd(c.kind, c.plural)
	c.Must(c.definitions.Delete(c.Context(), definition))
	c.Eventually(func() error {
		err := c.definitions.Get(c.Context(), client.ObjectKeyFromObject(definition), definition)
		if apierrs.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the CustomResourceDefinition exists: %w", err)
	})
}

// child returns a reconciler of a child of a version.
func (c *comingAndGoing) child(version string) reconcilers.SubReconciler[*fixture.Resource] {
	type object = *unstructured.Unstructured
	return &reconcilers.ChildReconciler[*fixture.Resource, object, *unstructured.UnstructuredList]{
		ChildType: newUnstructured(c.of(version), ""), ChildListType: newUnstructuredList(c.of(version)),
		DesiredChild: func(_ context.Context, parent *fixture.Resource) (object, error) {
			child := newUnstructured(c.of(version), parent.Name)
			child.SetNamespace(parent.Namespace)
			return child, nil
		},
		MergeBeforeUpdate:          func(_, _ object) {},
		ReflectChildStatusOnParent: func(context.Context, *fixture.Resource, object, error) {},
	}
}

// informers returns the number of informers of the kind.
func (c *comingAndGoing) informers(mgr ctrl.Manager) int {
	count := 0
	for _, informer := range ctrlfields.StartedInformers(mgr.GetCache()) {
		if informer.Kind.GroupKind() == c.kind.GroupKind() {
			count++
		}
	}
	return count
}

// Controllers of children and of tracked objects follow a kind that is installed late, removed, and installed again
// with another version. Not parallel: it counts goroutines.
func TestWhileServed_KindThatComesAndGoes(t *testing.T) {
	e := newBenchmarkEnv(t)
	c := newComingAndGoing(e, "guests.trueup.dev")
	n := 1000
	if testing.Short() {
		n = 100
	}
	for i := range n {
		e.Add(newResource(fmt.Sprintf("r-%04d", i), nil))
	}

	children, tracked := &seen{}, &seen{}
	note := func(s *seen, what string) reconcilers.SubReconciler[*fixture.Resource] {
		return &reconcilers.SyncReconciler[*fixture.Resource]{
			Sync: func(_ context.Context, resource *fixture.Resource) error {
				s.set(resource.Name, what)
				return nil
			},
		}
	}
	var mgr ctrl.Manager
	var config reconcilers.Config
	options := ctrl.Options{
		Controller: ctrlconfig.Controller{MaxConcurrentReconciles: 10},
		Client:     client.Options{Cache: &client.CacheOptions{Unstructured: true}},
	}
	e.startWith(options, func(ctx context.Context, m ctrl.Manager, cfg reconcilers.Config) error {
		mgr, config = m, cfg
		parents := &reconcilers.ResourceReconciler[*fixture.Resource]{
			Name: "parents-of-guests", Config: cfg, Reconciler: &reconcilers.WhileServed[*fixture.Resource]{
				Name: "v1", Kinds: []client.Object{newUnstructured(c.of("v1"), "")},
				Reconciler: reconcilers.Sequence[*fixture.Resource]{c.child("v1"), note(children, "v1")},
				Else: &reconcilers.WhileServed[*fixture.Resource]{
					Name: "v1beta1", Kinds: []client.Object{newUnstructured(c.of("v1beta1"), "")},
					Reconciler: reconcilers.Sequence[*fixture.Resource]{c.child("v1beta1"), note(children, "v1beta1")},
					Else:       note(children, "none"),
				},
			},
		}
		trackers := &reconcilers.ResourceReconciler[*fixture.Resource]{
			Name: "trackers-of-guests", Config: cfg, Reconciler: &reconcilers.WhileServed[*fixture.Resource]{
				Kinds: []client.Object{newUnstructured(c.of("v1"), "")},
				Reconciler: &reconcilers.SyncReconciler[*fixture.Resource]{
					Setup: func(ctx context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder) error {
						guest := newUnstructured(c.of("v1"), "")
						bldr.Watches(guest, reconcilers.EnqueueTracked(ctx))
						return mgr.GetFieldIndexer().IndexField(ctx, guest, "room", func(client.Object) []string { return nil })
					},
					Sync: func(ctx context.Context, resource *fixture.Resource) error {
						guest := newUnstructured(c.of("v1"), "")
						key := types.NamespacedName{Namespace: resource.Namespace, Name: "tracked"}
						err := reconcilers.RetrieveConfigOrDie(ctx).TrackAndGet(ctx, key, guest)
						if client.IgnoreNotFound(err) != nil {
							return err
						}
						tracked.set(resource.Name, map[bool]string{true: "absent", false: "present"}[err != nil])
						return nil
					},
				},
				Else: note(tracked, "none"),
			},
		}
		return errors.Join(parents.SetupWithManager(ctx, m), trackers.SetupWithManager(ctx, m))
	})
	both := func(child, reference string) {
		t.Helper()
		begin := time.Now()
		await.Nil(t, 5*apitest.Timeout, func() error { // of up to 1,000 resources
			return errors.Join(children.all(n, child), tracked.all(n, reference))
		})
		t.Logf("%s and %s after %s", child, reference, time.Since(begin).Round(time.Millisecond))
	}
	restores := func(version string) {
		t.Helper()
		guest := newUnstructured(c.of(version), "r-0000")
		e.Must(e.Read(guest))
		uid := guest.GetUID()
		e.Must(e.Delete(e.Context(), guest))
		e.Eventually(func() error {
			if err := e.Read(guest); err != nil {
				return err
			}
			if guest.GetUID() == uid {
				return errors.New("the child was not deleted")
			}
			return nil
		})
	}

	both("none", "none")
	if got := apitest.Counted(t, "trueup_inactive_steps", map[string]string{"step": "v1beta1"}); got != 1 {
		t.Errorf("trueup_inactive_steps is %v, want 1", got)
	}
	goroutines := 0
	for round, version := range []string{"v1", "v1beta1", "v1"} {
		c.install(version)
		if version == "v1" {
			both(version, "absent")
			guest := newUnstructured(c.of("v1"), "tracked")
			e.Add(guest)
			both(version, "present")
		} else {
			both(version, "none")
		}
		restores(version)
		c.uninstall()
		both("none", "none")
		e.Eventually(func() error {
			if found := c.informers(mgr); found > 0 {
				return fmt.Errorf("%d informers of a kind that is not served", found)
			}
			if now := runtime.NumGoroutine(); round > 0 && now > goroutines+10 {
				return fmt.Errorf("%d goroutines, %d after the first round", now, goroutines)
			}
			return nil
		})
		if round == 0 {
			goroutines = runtime.NumGoroutine()
		}

		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		guest := newUnstructured(c.of(version), "")
		err := config.Get(ctx, types.NamespacedName{Namespace: e.Namespace, Name: "r-0000"}, guest)
		if !meta.IsNoMatchError(err) || ctx.Err() != nil {
			t.Errorf("a read of a kind that is not served returned %v", err)
		}
		cancel()
	}
}

// The informer of another controller that watches the kind outside of WhileServed is not stopped.
func TestWhileServed_KindThatIsAlsoWatchedOutside(t *testing.T) {
	e := newEnv(t)
	c := newComingAndGoing(e, "shared-guests.trueup.dev")
	c.install("v1")
	found := &seen{}
	note := func(what string) reconcilers.SubReconciler[*fixture.Resource] {
		return &reconcilers.SyncReconciler[*fixture.Resource]{
			Sync: func(_ context.Context, resource *fixture.Resource) error {
				found.set(resource.Name, what)
				return nil
			},
		}
	}
	e.Eventually(func() error {
		guests := newUnstructuredList(c.of("v1"))
		return e.List(e.Context(), guests, client.InNamespace(e.Namespace))
	})
	e.start(func(ctx context.Context, m ctrl.Manager, cfg reconcilers.Config) error {
		plain := &reconcilers.ResourceReconciler[*fixture.Resource]{
			Name: "parents-outside", Config: cfg, Reconciler: c.child("v1"),
		}
		gated := &reconcilers.ResourceReconciler[*fixture.Resource]{
			Name: "parents-within", Config: cfg, Reconciler: &reconcilers.WhileServed[*fixture.Resource]{
				Kinds: []client.Object{newUnstructured(c.of("v1"), "")}, Else: note("none"),
				Reconciler: &reconcilers.SyncReconciler[*fixture.Resource]{
					Setup: func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
						bldr.Watches(newUnstructured(c.of("v1"), ""), reconcilers.EnqueueTracked(ctx))
						return nil
					},
					Sync: note("served").(*reconcilers.SyncReconciler[*fixture.Resource]).Sync,
				},
			},
		}
		return errors.Join(plain.SetupWithManager(ctx, m), gated.SetupWithManager(ctx, m))
	})
	e.Add(newResource("it", nil))
	for range 2 {
		e.Eventually(func() error { return found.all(1, "served") })
		guest := newUnstructured(c.of("v1"), "it")
		e.Eventually(func() error { return e.Read(guest) })
		uid := guest.GetUID()
		e.Must(e.Delete(e.Context(), guest))
		e.Eventually(func() error { // the watch of the other controller works
			if err := e.Read(guest); err != nil || guest.GetUID() != uid {
				return err
			}
			return errors.New("the child was not deleted")
		})
		c.uninstall()
		e.Eventually(func() error { return found.all(1, "none") })
		c.install("v1")
	}
}

// A controller of a kind that is installed late, removed and installed again. Its finalizers are removed while the
// CustomResourceDefinition is being deleted.
func TestWhileServed_Root(t *testing.T) {
	const finalizer = "trueup.dev/guest"
	type object = *unstructured.Unstructured
	for name, build := range map[string]func(kind object, sub reconcilers.SubReconciler[object]) setup{
		"tree": func(kind object, sub reconcilers.SubReconciler[object]) setup {
			return func(ctx context.Context, m ctrl.Manager, cfg reconcilers.Config) error {
				r := &reconcilers.ResourceReconciler[object]{Type: kind, WhileServed: true, Config: cfg, Reconciler: sub}
				return r.SetupWithManager(ctx, m)
			}
		},
		"events": func(kind object, sub reconcilers.SubReconciler[object]) setup {
			return func(ctx context.Context, m ctrl.Manager, cfg reconcilers.Config) error {
				c := &operator.Controller[object]{
					Type: kind, WhileServed: true, Config: cfg, Handlers: []reconcilers.SubReconciler[object]{sub},
				}
				return c.SetupWithManager(ctx, m)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			c := newComingAndGoing(e, name+"-guests.trueup.dev")
			found := &seen{}
			var mgr ctrl.Manager
			e.start(func(_ context.Context, m ctrl.Manager, _ reconcilers.Config) error {
				mgr = m
				return nil
			}, build(newUnstructured(c.of("v1"), ""), &reconcilers.WithFinalizer[object]{
				Finalizer: finalizer, Reconciler: &reconcilers.SyncReconciler[object]{
					Sync: func(_ context.Context, guest object) error {
						found.set(guest.GetName(), "welcome")
						return nil
					},
					Finalize: func(_ context.Context, guest object) error {
						found.set(guest.GetName(), "goodbye")
						return nil
					},
				},
			}))
			for range 2 {
				c.install("v1")
				guest := newUnstructured(c.of("v1"), "it")
				guest.SetNamespace(e.Namespace)
				e.Eventually(func() error { return e.Create(e.Context(), guest.DeepCopy()) })
				e.Eventually(func() error { return found.all(1, "welcome") })
				c.uninstall()
				e.Eventually(func() error { return found.all(1, "goodbye") })
				e.Eventually(func() error {
					if informers := c.informers(mgr); informers > 0 {
						return fmt.Errorf("%d informers of a kind that is not served", informers)
					}
					return nil
				})
			}
		})
	}
}

// A single resource of a kind that is installed late, removed and installed again.
func TestWhileServed_Aggregate(t *testing.T) {
	if testing.Short() {
		t.Skip("waits until it is noticed that a kind is not served")
	}
	type object = *unstructured.Unstructured
	e := newEnv(t)
	c := newComingAndGoing(e, "single-guests.trueup.dev")
	var mgr ctrl.Manager
	e.start(func(ctx context.Context, m ctrl.Manager, cfg reconcilers.Config) error {
		mgr = m
		r := &reconcilers.AggregateReconciler[object]{
			Name: "single-guest", Type: newUnstructured(c.of("v1"), ""), WhileServed: true, Config: cfg,
			Request: reconcilers.Request{NamespacedName: types.NamespacedName{Namespace: e.Namespace, Name: "it"}},
			DesiredResource: func(_ context.Context, guest object) (object, error) {
				return guest, unstructured.SetNestedField(guest.Object, "yes", "spec", "welcome")
			},
			MergeBeforeUpdate: func(current, desired object) { current.Object["spec"] = desired.Object["spec"] },
		}
		return r.SetupWithManager(ctx, m)
	})
	inactive := func(want float64) {
		t.Helper()
		e.Eventually(func() error {
			got := apitest.Counted(t, "trueup_inactive_steps", map[string]string{"controller": "single-guest"})
			if got != want {
				return fmt.Errorf("trueup_inactive_steps is %v, want %v", got, want)
			}
			return nil
		})
	}
	for range 2 {
		inactive(1)
		c.install("v1")
		guest := newUnstructured(c.of("v1"), "it")
		welcome := func() error {
			if err := e.Read(guest); err != nil {
				return err
			}
			if spec := guest.Object["spec"]; !cmp.Equal(spec, map[string]any{"welcome": "yes"}) {
				return fmt.Errorf("the spec is %v", spec)
			}
			return nil
		}
		e.Eventually(welcome)
		inactive(0)
		e.Must(e.Patch(e.Context(), guest, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"welcome":"no"}}`))))
		e.Eventually(welcome)
		e.Must(e.Delete(e.Context(), guest))
		e.Eventually(welcome)
		c.uninstall()
		inactive(1)
		e.Eventually(func() error {
			if informers := c.informers(mgr); informers > 0 {
				return fmt.Errorf("%d informers of a kind that is not served", informers)
			}
			return nil
		})
	}
	// Until an absence is noticed, requests fail, and are retried with back-off.
	labels := map[string]string{"controller": "single-guest"}
	reconciles := apitest.Counted(t, "controller_runtime_reconcile_total", labels)
	failures := apitest.Counted(t, "controller_runtime_reconcile_errors_total", labels)
	if t.Logf("%v reconciles, %v failures", reconciles, failures); reconciles > 150 || failures > 50 {
		t.Errorf("%v reconciles and %v failures, want at most 150 and 50", reconciles, failures)
	}
}
