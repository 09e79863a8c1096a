// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"trueup.dev/observe"
)

// TestWhatWorksWithoutTheSecondCluster starts two controllers, and one of them watches a cluster that cannot be
// reached.
func TestWhatWorksWithoutTheSecondCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("waits until a wait for a cache is reported")
	}
	e := newEnv(t)
	works, waits := make(chan string, 100), make(chan observe.CacheWait, 100)
	e.Manager(e.RESTConfig(), ctrl.Options{}, func(_ context.Context, mgr ctrl.Manager) error {
		edge, err := cluster.New(&rest.Config{Host: "https://127.0.0.1:1"}, func(o *cluster.Options) {
			o.Scheme = mgr.GetScheme()
		})
		if err != nil {
			return err
		}
		observe.Of(mgr).Add(observe.Func(func(_ context.Context, event observe.Event) {
			if wait, ok := event.(*observe.CacheWait); ok && !wait.Ended {
				waits <- *wait
			}
		}))
		plain := ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Named("plain")
		both := ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Named("both").WatchesRawSource(
			source.Kind[client.Object](edge.GetCache(), &corev1.Secret{}, &handler.EnqueueRequestForObject{}),
		)
		note := reconcile.Func(func(_ context.Context, req reconcile.Request) (reconcile.Result, error) {
			works <- req.Name
			return reconcile.Result{}, nil
		})
		never := reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
			t.Error("a controller runs whose cache is not filled")
			return reconcile.Result{}, nil
		})
		return errors.Join(
			mgr.Add(manager.RunnableFunc(edge.Start)), observe.Controller(plain).Complete(note),
			observe.Controller(both).Complete(never),
		)
	})
	e.Add(newConfigMap("it", nil))
	deadline := time.After(time.Minute)
	for reconciled := false; !reconciled; {
		select {
		case name := <-works:
			reconciled = name == "it"
		case <-deadline:
			t.Fatal("the controller that does not need the second cluster does not work")
		}
	}
	select {
	case wait := <-waits:
		if wait.Controller != "both" || wait.Kind.Kind != "Secret" || wait.Err == nil {
			t.Errorf("got %s: %v", wait.Controller, &wait)
		}
	case <-deadline:
		t.Fatal("nothing says that a controller waits")
	}
}
