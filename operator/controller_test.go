// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/operator"
	"trueup.dev/reconcilers"
	"trueup.dev/resource"
	"trueup.dev/validation"
)

// newManager returns a manager that is never started.
func newManager(t testing.TB, w *world) ctrl.Manager {
	t.Helper()
	mapper := meta.NewDefaultRESTMapper(nil)
	for gvk := range w.config.Scheme().AllKnownTypes() {
		mapper.Add(gvk, meta.RESTScopeNamespace)
	}
	mgr, err := ctrl.NewManager(&rest.Config{Host: "http://nowhere.invalid"}, ctrl.Options{
		Scheme:         w.config.Scheme(),
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mapper, nil },
		NewClient:      func(*rest.Config, client.Options) (client.Client, error) { return w.config.Client, nil },
		Metrics:        server.Options{BindAddress: "0"},
		Controller:     ctrlconfig.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return mgr
}

func TestController_SetupWithManager(t *testing.T) {
	w := newWorld(t)
	fine := func() sub { return operator.WatcherReconciler(watcher[*fixture.Resource]{new([]string)}) }
	failing := &reconcilers.SyncReconciler[*fixture.Resource]{
		Setup: func(context.Context, reconcilers.Manager, *reconcilers.Builder) error { return errTest },
		Sync:  func(context.Context, *fixture.Resource) error { return nil },
	}
	setup := func(err error) func(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
		return func(context.Context, reconcilers.Manager, *reconcilers.Builder) error { return err }
	}
	for name, tc := range map[string]struct {
		controller *operator.Controller[*fixture.Resource]
		want       error
	}{
		"minimal": {controller: &operator.Controller[*fixture.Resource]{Handlers: []sub{fine()}}},
		"all there is": {
			controller: &operator.Controller[*fixture.Resource]{
				Name: "all",
				Handlers: []sub{
					fine(),
					operator.NewOpinionated[*fixture.Resource](testFinalizer, &operator.TypedReconciler[*fixture.Resource]{}),
				},
				MaxConcurrentReconciles: 3, Setup: setup(nil),
			},
		},
		"failing setup": {
			controller: &operator.Controller[*fixture.Resource]{Handlers: []sub{fine()}, Setup: setup(errTest)}, want: errTest,
		},
		"failing handler": {
			controller: &operator.Controller[*fixture.Resource]{Handlers: []sub{fine(), failing}}, want: errTest,
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.controller.Config = w.config
			err := tc.controller.SetupWithManager(t.Context(), newManager(t, w))
			if tc.want == nil {
				wantErr(t, err)
				return
			}
			wantErr(t, err, tc.want)
		})
	}
	t.Run("no handlers", func(t *testing.T) {
		err := (&operator.Controller[*fixture.Resource]{Config: w.config}).SetupWithManager(t.Context(), newManager(t, w))
		wantText(t, `Controller "" must define Handlers`, err)
	})
	for name, handler := range map[string]sub{
		"of a handler": operator.WatcherReconciler[*fixture.Resource](nil),
		"of an opinionated one": operator.OpinionatedWatcher(
			"orphan", operator.TypedWatcher[*fixture.Resource](watcher[*fixture.Resource]{}),
		),
		"of one that has no value": nil,
	} {
		t.Run("problem "+name, func(t *testing.T) {
			c := &operator.Controller[*fixture.Resource]{Handlers: []sub{handler}, Config: w.config}
			if err := c.SetupWithManager(t.Context(), newManager(t, w)); err == nil {
				t.Error("no error")
			}
			if handler == nil {
				return
			}
			if err := handler.SetupWithManager(t.Context(), newManager(t, w), nil); err == nil {
				t.Error("no error of the handler itself")
			}
		})
	}
}

func TestController_Validate(t *testing.T) {
	recursive := validation.WithRecursive(t.Context())
	wantText(t, `Controller "" must define Handlers`, (&operator.Controller[*fixture.Resource]{}).Validate(recursive))
	wantText(t, "Controller \"mine\" must define Handlers\nResourceReconciler \"mine\" must define Type",
		(&operator.Controller[resource.Object]{Name: "mine"}).Validate(recursive))
	wantText(t, "", (&operator.Controller[resource.Object]{
		Type: &fixture.Resource{}, Handlers: []reconcilers.SubReconciler[resource.Object]{
			operator.WatcherReconciler(watcher[resource.Object]{}),
		},
	}).Validate(recursive))
}
