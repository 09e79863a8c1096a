// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"trueup.dev/informer"
	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/operator"
	"trueup.dev/reconcilers"
	"trueup.dev/resource"
)

// An informer may wait forever: for permissions, or because of a selector that the API server does not support.
func TestInformerController_RunEndsWhileAnInformerIsNotFilled(t *testing.T) {
	e := newEnv(t)
	mgr, err := ctrl.NewManager(e.RESTConfig(), ctrl.Options{
		Scheme: fixture.NewScheme(), Metrics: metricsserver.Options{BindAddress: "0"},
	})
	e.Must(err)
	c := operator.NewInformerController(operator.InformerControllerConfig{Manager: mgr})
	unsupported := e.supply(informer.DefaultSupplier, mgr, informer.Options{
		FieldSelectors: []string{"data.value=1"},
	})
	fine := e.supply(informer.DefaultSupplier, mgr, informer.Options{})
	e.Must(errors.Join(
		c.AddInformer(fine, e.Namespace), c.AddWatcher(&calls{}, e.Namespace),
		c.AddInformer(unsupported, e.Namespace+"-unsupported"), c.AddWatcher(&calls{}, e.Namespace+"-unsupported"),
	))
	ctx, stop := context.WithCancel(e.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	e.Eventually(func() error { // only now the other informer is filled
		if !fine.WaitForCacheSync(ctx) {
			return ctx.Err()
		}
		return nil
	})
	stop()
	select {
	case err := <-ended:
		if err == nil ||
			!strings.HasSuffix(
				err.Error(), "before the caches synced; they keep running until the process ends: "+e.Namespace+"-unsupported",
			) {
			t.Errorf("Run returned %v, want an error that names the informer", err)
		}
	case <-time.After(apitest.Timeout):
		t.Error("Run did not return")
	}
}

func TestInformerController_SkipStatusUpdate(t *testing.T) {
	t.Parallel()
	for name, skip := range map[string]bool{"of its own": false, "of others": true} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			kind := resource.Kind{
				Schema: resource.NewSimpleSchema(
					fixture.GroupVersion.Group, fixture.GroupVersion.Version, &fixture.Resource{}, &fixture.ResourceList{},
				),
			}
			watcher := &calls{fail: func(string) error { return errors.New("on purpose") }}
			stop := e.start(func(ctx context.Context, mgr ctrl.Manager, _ reconcilers.Config) error {
				c := operator.NewInformerController(operator.InformerControllerConfig{
					SkipStatusUpdate: skip, RetryPolicy: func(error, int) (bool, time.Duration) { return false, 0 },
				})
				informer, err := informer.DefaultSupplier(kind, mgr, informer.Options{
					Namespaces: []string{e.Namespace},
				})
				e.Must(errors.Join(err, c.AddInformer(informer, e.Namespace), c.AddWatcher(watcher, e.Namespace)))
				return c.SetupWithManager(ctx, mgr)
			})
			object := &fixture.Resource{}
			object.Name = "test"
			e.Add(object)
			e.Eventually(func() error { return want(1, len(watcher.made())) })
			if !skip {
				e.Eventually(func() error {
					e.Must(e.Read(object))
					return want(1, len(object.Status.Conditions))
				})
			}
			stop() // after which nothing is written
			e.Must(e.Read(object))
			if skip && len(object.Status.Conditions) > 0 {
				t.Errorf("conditions = %v in a status of other controllers", object.Status.Conditions)
			}
		})
	}
}
