// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"trueup.dev/informer"
	"trueup.dev/resource"
)

func TestInformerController_Adds(t *testing.T) {
	source := informer.New(nil, &corev1.ConfigMap{})
	watcher, other := &nothing{}, &nothing{name: "other"}
	reconciler := &TypedReconciler[*corev1.ConfigMap]{}
	for name, tc := range map[string]struct {
		do   func(c *InformerController) error
		want string // an error of validation, if any
		n    int    // handlers
	}{
		"nothing": {do: func(*InformerController) error { return nil }},
		"no handler": {
			do:   func(c *InformerController) error { return c.AddInformer(source, "k") },
			want: `kind "k" must have a watcher or a reconciler`,
		},
		"no informer": {
			do: func(c *InformerController) error { return c.AddWatcher(watcher, "k") }, want: `kind "k" must have an informer`,
			n: 1,
		},
		"shared informer": {
			do: then(full(source, watcher, other, reconciler), func(c *InformerController) error {
				return errors.Join(c.AddInformer(source, "l"), c.AddWatcher(watcher, "l"))
			}), want: `kind "l" must have its own informer`, n: 3,
		},
		"all": {do: full(source, watcher, other, reconciler), n: 3},
		"without one": {
			do: then(full(source, watcher, other, reconciler), func(c *InformerController) error {
				return c.RemoveWatcher(other, "k")
			}),
			n: 2,
		},
		"without first": {
			do: then(full(source, watcher, other, reconciler), func(c *InformerController) error {
				return c.RemoveReconciler(reconciler, "k")
			}),
			n: 2,
		},
		"other kind": {
			do: then(full(source, watcher, other, reconciler), func(c *InformerController) error {
				return c.RemoveWatcher(other, "l")
			}),
			n: 3,
		},
		"no watchers": {
			do: then(full(source, watcher, other, reconciler), func(c *InformerController) error {
				return c.RemoveAllWatchersForResource("k")
			}),
			n: 1,
		},
		"no reconcilers": {
			do: then(full(source, watcher, other, reconciler), func(c *InformerController) error {
				return c.RemoveAllReconcilersForResource("k")
			}),
			n: 2,
		},
		"informer is off": {
			do: then(full(source, watcher, other, reconciler), func(c *InformerController) error {
				return c.RemoveInformer(source, "k")
			}),
			want: "must have an informer", n: 3,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := NewInformerController(DefaultInformerControllerConfig())
			if err := tc.do(c); err != nil {
				t.Fatal(err)
			}
			err := c.validate()
			if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
			if k := c.kinds["k"]; k != nil && len(k.handlers) != tc.n {
				t.Errorf("%d handlers, want %d", len(k.handlers), tc.n)
			}
		})
	}
}

// A mistake can be corrected: set-up is only final if it was valid.
func TestInformerController_SetUpAfterAMistake(t *testing.T) {
	c := NewInformerController(DefaultInformerControllerConfig())
	if err := c.AddInformer(informer.New(nil, &corev1.ConfigMap{}), "k"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`kind "k" must have a watcher or a reconciler`, `kind "k": the manager must not be nil`, "was set up already",
	} {
		if err := c.SetupWithManager(t.Context(), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
		if len(c.kinds["k"].handlers) == 0 {
			if err := c.AddWatcher(&nothing{}, "k"); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func full(
	source informer.Informer, watcher, other ResourceWatcher, reconciler Reconciler,
) func(c *InformerController) error {
	return func(c *InformerController) error {
		return errors.Join(
			c.AddInformer(source, "k"), c.AddWatcher(watcher, "k"), c.AddReconciler(reconciler, "k"), c.AddWatcher(other, "k"),
		)
	}
}

func then(first, second func(c *InformerController) error) func(c *InformerController) error {
	return func(c *InformerController) error { return errors.Join(first(c), second(c)) }
}

// nothing is a watcher without effect.
type nothing struct{ name string }

func (*nothing) Add(context.Context, resource.Object) error                     { return nil }
func (*nothing) Update(context.Context, resource.Object, resource.Object) error { return nil }
func (*nothing) Delete(context.Context, resource.Object) error                  { return nil }

func TestInformerController_Refuses(t *testing.T) {
	c := NewInformerController(InformerControllerConfig{})
	for name, err := range map[string]error{
		"nil informer": c.AddInformer(nil, "k"), "nil watcher": c.AddWatcher(nil, "k"),
		"nil reconciler": c.AddReconciler(nil, "k"),
		"empty kind":     c.AddWatcher(&nothing{}, ""), "no cluster": c.Run(t.Context()),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := c.SetupWithManager(t.Context(), nil); err != nil {
		t.Errorf("nothing to set up: %v", err)
	}
	source := informer.New(nil, &corev1.ConfigMap{})
	for name, err := range map[string]error{
		"late, without a handler": c.AddInformer(source, "k"), "second": c.SetupWithManager(t.Context(), nil),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// A nil handler behind an interface would panic at its first call.
func TestInformerController_RefusesHandlersThatAreNil(t *testing.T) {
	c := NewInformerController(InformerControllerConfig{})
	for name, err := range map[string]error{
		"watcher":         c.AddWatcher((*nothing)(nil), "k"),
		"widened nil":     c.AddWatcher(WidenWatcher[*corev1.ConfigMap](nil), "k"),
		"widened pointer": c.AddWatcher(WidenWatcher(Untyped[*corev1.ConfigMap]((*nothing)(nil))), "k"),
		"reconciler":      c.AddReconciler((*TypedReconciler[*corev1.ConfigMap])(nil), "k"),
	} {
		if err == nil || !strings.Contains(err.Error(), `kind "k" must not be nil`) {
			t.Errorf("%s: error = %v", name, err)
		}
	}
	if err := c.AddWatcher(WidenWatcher(Untyped[*corev1.ConfigMap](&nothing{})), "k"); err != nil {
		t.Error(err)
	}
}

// checkedManager keeps its checks as a manager of controller-runtime does: by name.
type checkedManager struct {
	ctrl.Manager
	checks map[string]healthz.Checker
}

func (m *checkedManager) AddReadyzCheck(name string, check healthz.Checker) error {
	m.checks[name] = check
	return nil
}

// unsyncedInformer reports its name while it waits for its objects.
type unsyncedInformer struct {
	informer.Informer
	name string
}

func (i *unsyncedInformer) GetInformer(
	context.Context, client.Object, ...cache.InformerGetOption,
) (cache.Informer, error) {
	return nil, errors.New(i.name)
}

// A manager is ready when the informers of all its InformerControllers are, also if they have the same kinds.
func TestInformerController_SeveralOfOneManagerHaveTheirOwnChecks(t *testing.T) {
	made, err := ctrl.NewManager(&rest.Config{Host: "http://127.0.0.1:1"}, ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	mgr := &checkedManager{made, map[string]healthz.Checker{}}
	for _, informers := range [][]string{{"first", "second"}, {"third"}} {
		c := NewInformerController(InformerControllerConfig{})
		for _, name := range informers {
			source := &unsyncedInformer{informer.New(made.GetCache(), &corev1.ConfigMap{}), name}
			if err := c.AddInformer(source, "maps"); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(c.AddWatcher(&nothing{}, "maps"), c.SetupWithManager(t.Context(), mgr)); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]string{}
	for name, check := range mgr.checks {
		got[name] = ""
		if err := check(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil)); err != nil {
			got[name] = err.Error()
		}
	}
	want := map[string]string{"informer-maps": "first", "informer-maps-2": "second", "informer-maps-3": "third"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("checks and what they wait for (-want +got):\n%s", diff)
	}
}
