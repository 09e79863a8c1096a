// SPDX-License-Identifier: Apache-2.0

package convergence

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// protected adds a finalizer to reconcilers with effects outside of the cluster.
func protected(inner sub) sub {
	return &reconcilers.WithFinalizer[*fixture.Resource]{Finalizer: finalizer, Reconciler: inner}
}

func TestSequence(t *testing.T) {
	prove(t, under(t, func(env converge.Env) sub {
		return reconcilers.Sequence[*fixture.Resource]{newChild(fixedName), protected(publishes(env, "thing"))}
	}))
}

func TestAlways(t *testing.T) {
	prove(t, under(t, func(env converge.Env) sub {
		return protected(reconcilers.Always[*fixture.Resource]{
			publishes(env, "thing"), newChild(generatedName), publishes(env, "other"),
		})
	}))
}

// A thing that is no longer desired is removed.
func TestIfThen(t *testing.T) {
	s := under(t, func(env converge.Env) sub {
		return protected(&reconcilers.IfThen[*fixture.Resource]{
			If:   func(_ context.Context, resource *fixture.Resource) bool { return resource.Spec.Fields["private"] == "" },
			Then: publishes(env, "thing"),
			Else: &reconcilers.SyncReconciler[*fixture.Resource]{
				Sync: func(ctx context.Context, resource *fixture.Resource) error {
					report(resource, "thing", "")
					return drop(ctx, env, "thing")
				},
			},
		})
	})
	s.Steps = converge.Lifecycle(newResource("one"), setField("private", "yes"), setField("private", ""))
	prove(t, s)
}

// One kind is served and one is not.
func TestWhileServed(t *testing.T) {
	missing := &unstructured.Unstructured{}
	missing.SetAPIVersion("missing.trueup.dev/v1")
	missing.SetKind("Missing")
	prove(t, under(t, func(env converge.Env) sub {
		return protected(&reconcilers.WhileServed[*fixture.Resource]{
			Kinds: []client.Object{missing}, Reconciler: publishes(env, "never"),
			Else: reconcilers.Sequence[*fixture.Resource]{publishes(env, "thing"), &reconcilers.WhileServed[*fixture.Resource]{
				Kinds: []client.Object{&corev1.ConfigMap{}}, Reconciler: newChild(fixedName),
			}},
		})
	}))
}

// A kind is installed late, and is removed and installed again at any moment. Its objects are made again, and what
// waits for them does not wait forever.
func TestWhileServed_KindThatComesAndGoes(t *testing.T) {
	type guest = *unstructured.Unstructured
	newGuest := func() guest {
		guest := &unstructured.Unstructured{}
		guest.SetGroupVersionKind(fixture.GroupVersion.WithKind("ResourceNoStatus"))
		return guest
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(fixture.GroupVersion.WithKind("ResourceNoStatusList"))
	child := func() sub {
		return &reconcilers.ChildReconciler[*fixture.Resource, guest, *unstructured.UnstructuredList]{
			ChildType: newGuest(), ChildListType: list,
			DesiredChild: func(_ context.Context, parent *fixture.Resource) (guest, error) {
				child := newGuest()
				child.SetNamespace(parent.Namespace)
				child.SetName(parent.Name)
				return child, nil
			},
			MergeBeforeUpdate:          func(_, _ guest) {},
			ReflectChildStatusOnParent: func(context.Context, *fixture.Resource, guest, error) {},
		}
	}
	waiting := func(halt error) sub {
		return &reconcilers.SyncReconciler[*fixture.Resource]{
			Setup: func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
				bldr.Watches(newGuest(), reconcilers.EnqueueTracked(ctx))
				return nil
			},
			Sync: func(ctx context.Context, resource *fixture.Resource) error {
				key := client.ObjectKeyFromObject(resource)
				err := reconcilers.RetrieveConfigOrDie(ctx).TrackAndGet(ctx, key, newGuest())
				if apierrs.IsNotFound(err) {
					return halt
				}
				if err == nil {
					report(resource, "guest", "here")
				}
				return err
			},
		}
	}
	for name, inner := range map[string]func() sub{
		"a child": child,
		"a halt until the child exists": func() sub {
			return reconcilers.Sequence[*fixture.Resource]{child(), waiting(reconcilers.ErrHaltSubReconcilers)}
		},
		"a durable halt until the child exists": func() sub {
			return reconcilers.Sequence[*fixture.Resource]{child(), waiting(reconcilers.ErrDurable)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := under(t, func(env converge.Env) sub {
				return protected(reconcilers.Sequence[*fixture.Resource]{
					publishes(env, "thing"),
					&reconcilers.WhileServed[*fixture.Resource]{Kinds: []client.Object{newGuest()}, Reconciler: inner()},
				})
			})
			s.With = []converge.Fault{converge.FaultKindRemoved}
			prove(t, s)
		})
	}
}

func TestWhile(t *testing.T) {
	prove(t, under(t, func(env converge.Env) sub {
		return protected(&reconcilers.While[*fixture.Resource]{
			Condition:     func(ctx context.Context, _ *fixture.Resource) bool { return reconcilers.RetrieveIteration(ctx) < 2 },
			MaxIterations: new(5),
			Reconciler: &reconcilers.SyncReconciler[*fixture.Resource]{
				Sync: func(ctx context.Context, resource *fixture.Resource) error {
					return put(ctx, env, thing(ctx), resource.Spec.Fields["value"])
				},
				Finalize: func(ctx context.Context, _ *fixture.Resource) error { return drop(ctx, env, thing(ctx)) },
			},
		})
	}))
}

func thing(ctx context.Context) string {
	return "thing " + strings.Repeat("i", reconcilers.RetrieveIteration(ctx)+1)
}

func TestForEach(t *testing.T) {
	s := under(t, func(env converge.Env) sub {
		cursor := reconcilers.CursorStasher[string]()
		return protected(&reconcilers.ForEach[*fixture.Resource, string]{
			Items: func(_ context.Context, resource *fixture.Resource) ([]string, error) {
				return strings.Fields(resource.Spec.Fields["things"]), nil
			},
			Reconciler: &reconcilers.SyncReconciler[*fixture.Resource]{
				Sync: func(ctx context.Context, resource *fixture.Resource) error {
					return put(ctx, env, cursor.RetrieveOrDie(ctx).Item, resource.Spec.Fields["value"])
				},
				Finalize: func(ctx context.Context, _ *fixture.Resource) error {
					return drop(ctx, env, cursor.RetrieveOrDie(ctx).Item)
				},
			},
		})
	})
	resource := newResource("one")
	setField("things", "x y")(resource)
	s.Steps = converge.Lifecycle(resource, setField("value", "two"), setField("things", "x y z"))
	prove(t, s)
}

// A failure is reported in the status, and the request is retried.
func TestTryCatch(t *testing.T) {
	prove(t, under(t, func(env converge.Env) sub {
		return protected(&reconcilers.TryCatch[*fixture.Resource]{
			Try: publishes(env, "thing"),
			Catch: func(
				_ context.Context, resource *fixture.Resource, _ reconcilers.Result, err error,
			) (reconcilers.Result, error) {
				if err == nil || resource.DeletionTimestamp != nil {
					return reconcilers.Result{}, err
				}
				report(resource, "problem", err.Error())
				return reconcilers.Result{RequeueAfter: time.Minute}, nil
			},
			Finally: &reconcilers.SyncReconciler[*fixture.Resource]{
				Sync: func(_ context.Context, resource *fixture.Resource) error {
					if resource.Status.Fields["thing"] == resource.Spec.Fields["value"] {
						report(resource, "problem", "")
					}
					return nil
				},
			},
		})
	}))
}

// A call that fails once is retried immediately.
func TestAdvice(t *testing.T) {
	prove(t, under(t, func(env converge.Env) sub {
		return protected(&reconcilers.Advice[*fixture.Resource]{
			Reconciler: reconcilers.Sequence[*fixture.Resource]{newChild(fixedName), publishes(env, "thing")},
			Before: func(_ context.Context, resource *fixture.Resource) (context.Context, reconcilers.Result, error) {
				report(resource, "before", resource.Spec.Fields["value"])
				return nil, reconcilers.Result{}, nil
			},
			Around: func(ctx context.Context, resource *fixture.Resource, inner sub) (reconcilers.Result, error) {
				result, err := inner.Reconcile(ctx, resource)
				if err != nil && !errors.Is(err, reconcilers.ErrQuiet) {
					return inner.Reconcile(ctx, resource)
				}
				return result, err
			},
			After: func(
				_ context.Context, resource *fixture.Resource, result reconcilers.Result, err error,
			) (reconcilers.Result, error) {
				report(resource, "after", resource.Status.Fields["before"])
				return result, err
			},
		})
	}))
}

// Errors that are not failures are retried nevertheless.
func TestQuietErrors(t *testing.T) {
	for name, quiet := range map[string]error{
		"quiet": reconcilers.ErrQuiet, "durable": reconcilers.ErrDurable, "halt": reconcilers.ErrHaltSubReconcilers,
		"retry after": reconcilers.ErrRetryAfter,
	} {
		t.Run(name, func(t *testing.T) {
			prove(t, under(t, func(env converge.Env) sub {
				return protected(&reconcilers.SyncReconciler[*fixture.Resource]{
					SyncWithResult: func(ctx context.Context, resource *fixture.Resource) (reconcilers.Result, error) {
						if err := put(ctx, env, "thing", resource.Spec.Fields["value"]); err != nil {
							return reconcilers.Result{RequeueAfter: time.Second}, errors.Join(quiet, err)
						}
						report(resource, "thing", resource.Spec.Fields["value"])
						return reconcilers.Result{}, nil
					},
					Finalize: func(ctx context.Context, _ *fixture.Resource) error { return drop(ctx, env, "thing") },
				})
			}))
		})
	}
}
