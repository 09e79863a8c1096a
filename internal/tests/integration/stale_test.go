// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// generated is a child with a generated name: only the cache shows whether it exists. It exists while the parent has
// the field "want", and its data are the parent's fields.
func generated(
	finalizer string,
) *reconcilers.ChildReconciler[*fixture.Resource, *corev1.ConfigMap, *corev1.ConfigMapList] {
	return &reconcilers.ChildReconciler[*fixture.Resource, *corev1.ConfigMap, *corev1.ConfigMapList]{
		DesiredChild: func(_ context.Context, parent *fixture.Resource) (*corev1.ConfigMap, error) {
			if parent.Spec.Fields["want"] == "" {
				return nil, nil
			}
			child := newConfigMap(parent.Spec.Fields["name"], parent.Spec.Fields)
			child.GenerateName, child.Namespace = parent.Name+"-", parent.Namespace
			return child, nil
		},
		ChildObjectManager: &reconcilers.UpdatingObjectManager[*corev1.ConfigMap]{
			Finalizer:         finalizer,
			MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) { current.Data = desired.Data },
		},
		ReflectChildStatusOnParent: func(_ context.Context, parent *fixture.Resource, child *corev1.ConfigMap, _ error) {
			parent.Status.Fields = nil
			if child != nil {
				parent.Status.Fields = map[string]string{"value": child.Data["value"]}
			}
		},
	}
}

// childrenOf lists the children of a Resource that are not being deleted.
func (e *env) childrenOf(parent string) []corev1.ConfigMap {
	e.Helper()
	var list corev1.ConfigMapList
	e.Must(e.List(e.Context(), &list, client.InNamespace(e.Namespace)))
	children := []corev1.ConfigMap{}
	for _, cm := range list.Items {
		if len(cm.OwnerReferences) == 1 && cm.OwnerReferences[0].Name == parent && cm.DeletionTimestamp == nil {
			children = append(children, cm)
		}
	}
	return children
}

func TestStaleCache_GeneratedNames(t *testing.T) {
	t.Parallel()
	// Without the guard, the API server is asked before a child with a generated name is created.
	for name, allow := range map[string]bool{"guarded": false, "not guarded": true} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			runs := atomic.Int64{}
			e.start(func(ctx context.Context, mgr ctrl.Manager, c reconcilers.Config) error {
				c.AllowStaleReads = allow
				count := &reconcilers.SyncReconciler[*fixture.Resource]{Sync: func(context.Context, *fixture.Resource) error {
					runs.Add(1)
					return nil
				}}
				return root(reconcilers.Sequence[*fixture.Resource]{count, generated("")})(ctx, mgr, c)
			})
			e.Add(newResource("first", map[string]string{"want": "yes"}))
			e.Eventually(func() error { return want(1, len(e.childrenOf("first"))) })

			e.watches.hold("configmaps")
			before := apitest.Counted(e, "trueup_stale_cache_waits_total", nil)
			resource := newResource("test", map[string]string{"want": "yes"})
			e.Add(resource)
			e.Eventually(func() error {
				if len(e.childrenOf("test")) == 0 {
					return fmt.Errorf("no child yet")
				}
				e.touch(resource)
				if allow && runs.Load() < 10 {
					return fmt.Errorf("not reconciled again")
				}
				if !allow && apitest.Counted(e, "trueup_stale_cache_waits_total", nil) < before+3 {
					return fmt.Errorf("not deferred yet")
				}
				return nil
			})
			if got := len(e.childrenOf("test")); got > 1 {
				t.Errorf("%d children exist, want 1", got)
			}
			put := runs.Load()
			e.watches.release("configmaps")
			e.Eventually(func() error {
				e.touch(resource)
				if runs.Load() == put {
					return fmt.Errorf("not reconciled again")
				}
				return want(1, len(e.childrenOf("test")))
			})
			if posts := len(e.traffic.of("configmaps")); posts != 2 {
				t.Errorf("%d writes to ConfigMaps, want one for each Resource: %v", posts, e.traffic.of("configmaps"))
			}
		})
	}
}

// unnamed selects metrics of the controllers of root.
var unnamed = map[string]string{"controller": "resource"}

func TestStaleCache_AnySequence(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		finalizer string
		// named children are created again under the same name
		child string
	}{
		"generated name": {},
		"fixed name":     {child: "test-child"},
		"finalizer":      {finalizer: "integration.trueup.dev/child"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			stop := e.start(root(generated(tc.finalizer)))
			timeouts := apitest.Counted(e, "trueup_stale_cache_timeouts_total", unnamed)
			resource := newResource("test", map[string]string{"want": "yes", "name": tc.child, "value": "0"})
			e.Add(resource)
			converged := func() {
				t.Helper()
				e.Eventually(func() error {
					e.Must(e.Read(resource))
					children := e.childrenOf("test")
					if resource.Spec.Fields["want"] == "" {
						return want(0, len(children))
					}
					if len(children) != 1 {
						return want(1, len(children))
					}
					value := resource.Spec.Fields["value"]
					return errors.Join(want(value, children[0].Data["value"]), want(value, resource.Status.Fields["value"]))
				})
			}
			converged()
			random := rand.New(rand.NewPCG(1, 1))
			for step := range 40 {
				if random.IntN(3) == 0 {
					e.watches.hold("configmaps")
				}
				if random.IntN(5) == 0 {
					e.watches.hold("resources")
				}
				change(e, resource, func(r *fixture.Resource) {
					r.Spec.Fields["value"] = fmt.Sprint(step + 1)
					if random.IntN(3) == 0 {
						r.Spec.Fields["want"] = ""
					} else {
						r.Spec.Fields["want"] = "yes"
					}
				})
				if got := len(e.childrenOf("test")); got > 1 {
					t.Fatalf("step %d: %d children exist", step, got)
				}
				if random.IntN(8) == 0 {
					stop()
					e.watches.release("configmaps")
					e.watches.release("resources")
					stop = e.start(root(generated(tc.finalizer)))
				}
				if random.IntN(2) == 0 {
					e.watches.release("configmaps")
					e.watches.release("resources")
				}
				if random.IntN(4) == 0 {
					e.watches.release("configmaps")
					e.watches.release("resources")
					converged()
				}
			}
			e.watches.release("configmaps")
			e.watches.release("resources")
			converged()
			// The test writes the spec of the Resource, so writes of the status may conflict; a child has a single
			// writer.
			for _, write := range e.traffic.conflicted() {
				if write != "PUT /apis/fixture.trueup.dev/v1/namespaces/"+e.Namespace+"/resources/test/status" &&
					write != "PATCH /apis/fixture.trueup.dev/v1/namespaces/"+e.Namespace+"/resources/test" {
					t.Errorf("conflict: %s", write)
				}
			}
			if got := apitest.Counted(e, "trueup_stale_cache_timeouts_total", unnamed) - timeouts; got > 0 {
				t.Errorf("%v requests timed out waiting for the cache", got)
			}
		})
	}
}

func want[T comparable](want, got T) error {
	if want != got {
		return fmt.Errorf("got %v, want %v", got, want)
	}
	return nil
}
