// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	"trueup.dev/sandbox"
)

func TestMain(m *testing.M) {
	if behavior := os.Getenv(planProgram); behavior != "" {
		mainOfPlanProgram(behavior)
	}
	apitest.Main(m)
}

// env is a namespace of a real Kubernetes API.
type env struct {
	*apitest.Env
	namespaces []string // that managers see
	traffic    traffic  // of managers
	watches    watches  // of managers
}

func newEnv(t *testing.T) *env {
	t.Helper()
	t.Parallel()
	return newBenchmarkEnv(t)
}

// newBenchmarkEnv is newEnv for tests that do not run in parallel.
func newBenchmarkEnv(t testing.TB) *env {
	t.Helper()
	e := &env{Env: apitest.New(t, fixture.NewScheme(), sandbox.TestOptions{CRDs: crds()})}
	e.namespaces = []string{e.Namespace}
	e.ReleaseAtEnd(&fixture.ResourceList{})
	return e
}

// anotherNamespace creates a namespace that managers that start later see as well.
func (e *env) anotherNamespace() string {
	e.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "other-"}}
	e.Must(e.Create(e.Context(), namespace))
	e.Cleanup(func() { e.Must(e.Delete(context.Background(), namespace)) })
	e.namespaces = append(e.namespaces, namespace.Name)
	return namespace.Name
}

// setup adds controllers to a manager.
type setup func(ctx context.Context, mgr ctrl.Manager, c reconcilers.Config) error

// start starts a manager. It stops with the test, or earlier with the returned function.
func (e *env) start(setups ...setup) (stop func()) {
	e.Helper()
	return e.startWith(ctrl.Options{}, setups...)
}

// startWith is start for a manager with further options.
func (e *env) startWith(options ctrl.Options, setups ...setup) (stop func()) {
	e.Helper()
	cfg := e.RESTConfig()
	cfg.Wrap(e.traffic.wrap)
	cfg.Wrap(e.watches.wrap)
	namespaces := map[string]cache.Config{}
	for _, name := range e.namespaces {
		namespaces[name] = cache.Config{}
	}
	options.Cache.DefaultNamespaces = namespaces
	return e.Manager(cfg, options, func(ctx context.Context, mgr ctrl.Manager) error {
		c := reconcilers.NewConfig(mgr, nil, time.Hour)
		for _, setup := range setups {
			if err := setup(ctx, mgr, c); err != nil {
				return err
			}
		}
		return nil
	})
}

// root is a setup with one controller of Resources.
func root(reconciler reconcilers.SubReconciler[*fixture.Resource]) setup {
	return func(ctx context.Context, mgr ctrl.Manager, c reconcilers.Config) error {
		r := &reconcilers.ResourceReconciler[*fixture.Resource]{Reconciler: reconciler, Config: c}
		return r.SetupWithManager(ctx, mgr)
	}
}

func change[T client.Object](e *env, object T, apply func(T)) {
	e.Helper()
	apitest.Change(e.Env, object, apply)
}

func until[T client.Object](e *env, object T, check func(T) error) {
	e.Helper()
	apitest.Until(e.Env, object, check)
}

// touch causes an event that no reconciler uses.
func (e *env) touch(object client.Object) {
	e.Helper()
	e.Must(e.Patch(e.Context(), object, client.RawPatch("application/merge-patch+json",
		fmt.Appendf(nil, `{"metadata":{"annotations":{"touched":"%d"}}}`, time.Now().UnixNano()))))
}

// events waits until events with all of these reasons exist for an object.
func (e *env) events(name string, reasons ...string) {
	e.Helper()
	e.Eventually(func() error {
		var list corev1.EventList
		if err := e.List(e.Context(), &list, client.InNamespace(e.Namespace)); err != nil {
			return err
		}
		seen := map[string]bool{}
		for _, event := range list.Items {
			if event.InvolvedObject.Name == name {
				seen[event.Reason] = true
			}
		}
		errs := []error{}
		for _, reason := range reasons {
			if !seen[reason] {
				errs = append(errs, fmt.Errorf("no event %s for %s, got %v", reason, name, seen))
			}
		}
		return errors.Join(errs...)
	})
}
