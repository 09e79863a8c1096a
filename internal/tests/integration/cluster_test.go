// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	"trueup.dev/sandbox"
)

// intoCluster is a controller whose resources are in the cluster of the manager, and whose children are in another
// cluster.
func intoCluster(other *sandbox.Sandbox) setup {
	return func(ctx context.Context, mgr ctrl.Manager, c reconcilers.Config) error {
		remote, err := cluster.New(other.RESTConfig(), func(o *cluster.Options) { o.Scheme = mgr.GetScheme() })
		if err != nil {
			return err
		}
		if err := mgr.Add(remote); err != nil {
			return err
		}
		there := c.WithCluster(remote)
		child := configMapOf("", func(parent *fixture.Resource) map[string]string {
			return map[string]string{"value": parent.Spec.Fields["value"]}
		})
		child.Finalizer = finalizer
		child.ListOptions = func(_ context.Context, parent *fixture.Resource) []client.ListOption {
			return []client.ListOption{client.InNamespace(parent.Namespace)}
		}
		return root(&reconcilers.WithConfig[*fixture.Resource]{
			Config:     func(context.Context, reconcilers.Config) (reconcilers.Config, error) { return there, nil },
			Reconciler: child,
		})(ctx, mgr, c)
	}
}

func TestWithConfig_anotherCluster(t *testing.T) {
	e := newEnv(t)
	other, err := sandbox.Start(t.Context(), sandbox.Options{Controllers: []string{"none"}, DisablePods: true})
	e.Must(err)
	t.Cleanup(func() { e.Must(other.Stop()) })
	there, err := client.New(other.RESTConfig(), client.Options{Scheme: e.Scheme()})
	e.Must(err)
	e.Must(there.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.Namespace}}))
	e.start(intoCluster(other))

	parent := newResource("it", map[string]string{"value": "1"})
	e.Add(parent)
	child := newConfigMap("it", nil)
	child.Namespace = e.Namespace
	childIs := func(value string) {
		t.Helper()
		e.Eventually(func() error {
			if err := there.Get(t.Context(), client.ObjectKeyFromObject(child), child); err != nil {
				return err
			}
			return dataIs(map[string]string{"value": value})(child)
		})
	}
	childIs("1")
	if len(child.OwnerReferences) != 0 {
		t.Errorf("the child has owner references to another cluster: %v", child.OwnerReferences)
	}
	if err := e.Read(newConfigMap("it", nil)); !apierrs.IsNotFound(err) {
		t.Errorf("reading the child in the cluster of its parent: %v", err)
	}
	e.Must(e.Read(parent))
	if len(parent.Finalizers) != 1 {
		t.Errorf("finalizers of the parent: %v", parent.Finalizers)
	}
	e.events("it", "FinalizerPatched", "Created") // the cluster of the parent

	change(e, parent, func(r *fixture.Resource) { r.Spec.Fields["value"] = "2" })
	childIs("2")

	// A change of the child in the other cluster triggers the parent.
	child.Data = map[string]string{"value": "by hand"}
	e.Must(there.Update(t.Context(), child))
	childIs("2")
	e.Must(there.Delete(t.Context(), child))
	childIs("2")

	e.Must(e.Delete(t.Context(), parent))
	e.WaitForDeletion(parent)
	e.Eventually(func() error {
		err := there.Get(t.Context(), client.ObjectKeyFromObject(child), child)
		if err == nil {
			return fmt.Errorf("the child still exists")
		}
		return client.IgnoreNotFound(err)
	})
}
