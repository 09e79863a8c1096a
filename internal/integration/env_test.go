// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"trueup.dev/internal/await"
	"trueup.dev/internal/fixture"
	"trueup.dev/reconcilers"
	"trueup.dev/sandbox"
)

// patience is how long something may take before a test gives it up.
const patience = 30 * time.Second

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard()) // watches complain when the control plane goes
	m.Run()
}

// env is a namespace of a real Kubernetes API.
type env struct {
	testing.TB
	client.Client // an administrator's, without a cache
	*sandbox.Env
	namespaces []string // that managers see
	traffic    traffic  // of managers
	watches    watches  // of managers
}

func newEnv(t *testing.T) *env {
	t.Helper()
	t.Parallel()
	sb := sandbox.ForTest(t, sandbox.TestOptions{CRDs: crds()})
	e := &env{TB: t, Client: newClient(t, sb.RESTConfig()), Env: sb, namespaces: []string{sb.Namespace}}
	t.Cleanup(e.releaseResources)
	return e
}

// releaseResources takes the finalizers off Resources that a test leaves behind: no controller will do it any more, and the namespace could not go.
func (e *env) releaseResources() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var list fixture.ResourceList
	if err := e.List(ctx, &list, client.InNamespace(e.Namespace)); err != nil {
		e.Error(err)
	}
	for _, resource := range list.Items {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
		if err := client.IgnoreNotFound(e.Patch(ctx, &resource, patch)); err != nil {
			e.Error(err)
		}
	}
}

func newClient(t testing.TB, cfg *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(cfg, client.Options{Scheme: fixture.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// anotherNamespace creates a namespace that managers, started later, see as well.
func (e *env) anotherNamespace() string {
	e.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "other-"}}
	e.must(e.Create(e.Context(), namespace))
	e.Cleanup(func() { e.must(e.Delete(context.Background(), namespace)) })
	e.namespaces = append(e.namespaces, namespace.Name)
	return namespace.Name
}

// setup adds controllers to a manager.
type setup func(ctx context.Context, mgr ctrl.Manager, c reconcilers.Config) error

// start starts a manager. It stops with the test, or earlier with the returned function.
func (e *env) start(setups ...setup) (stop func()) {
	e.Helper()
	cfg := e.RESTConfig()
	cfg.Wrap(e.traffic.wrap)
	cfg.Wrap(e.watches.wrap)
	namespaces := map[string]cache.Config{}
	for _, name := range e.namespaces {
		namespaces[name] = cache.Config{}
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:     e.Scheme(),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Cache:      cache.Options{DefaultNamespaces: namespaces},
		Controller: config.Controller{SkipNameValidation: new(true)}, // tests have controllers of the same name
	})
	e.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	c := reconcilers.NewConfig(mgr, nil, time.Hour)
	for _, setup := range setups {
		if err := setup(ctx, mgr, c); err != nil {
			cancel()
			e.Fatal(err)
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			e.Errorf("the manager ended with: %v", err)
		}
	})
	e.Cleanup(stop)
	return stop
}

// root is a setup with one controller of Resources.
func root(reconciler reconcilers.SubReconciler[*fixture.Resource]) setup {
	return func(ctx context.Context, mgr ctrl.Manager, c reconcilers.Config) error {
		r := &reconcilers.ResourceReconciler[*fixture.Resource]{Reconciler: reconciler, Config: c}
		return r.SetupWithManager(ctx, mgr)
	}
}

// eventually waits until check has nothing to object to.
func (e *env) eventually(check func() error) {
	e.Helper()
	await.Nil(e, patience, check)
}

// must stops the test if a call has failed.
func (e *env) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// create creates an object, in the namespace of the test unless it names another.
func (e *env) create(object client.Object) {
	e.Helper()
	if object.GetNamespace() == "" {
		object.SetNamespace(e.Namespace)
	}
	e.must(e.Create(e.Context(), object))
}

// read reads an object by its name, in the namespace of the test unless it names another.
func (e *env) read(object client.Object) error {
	if object.GetNamespace() == "" {
		object.SetNamespace(e.Namespace)
	}
	return e.Get(e.Context(), client.ObjectKeyFromObject(object), object)
}

// change reads an object, changes it and writes it, again if another writer was faster.
func change[T client.Object](e *env, object T, apply func(T)) {
	e.Helper()
	e.eventually(func() error {
		e.must(e.read(object))
		apply(object)
		err := e.Update(e.Context(), object)
		if err != nil && !apierrs.IsConflict(err) {
			e.Fatal(err)
		}
		return err
	})
}

// touch makes an event that no reconciler takes an interest in.
func (e *env) touch(object client.Object) {
	e.Helper()
	e.must(e.Patch(e.Context(), object, client.RawPatch("application/merge-patch+json",
		fmt.Appendf(nil, `{"metadata":{"annotations":{"touched":"%d"}}}`, time.Now().UnixNano()))))
}

// until reads an object until it is as it should be.
func until[T client.Object](e *env, object T, check func(T) error) {
	e.Helper()
	e.eventually(func() error {
		if err := e.read(object); err != nil {
			return err
		}
		return check(object)
	})
}

// gone waits until an object is not there any more.
func (e *env) gone(object client.Object) {
	e.Helper()
	e.eventually(func() error {
		err := e.read(object)
		if err == nil {
			return fmt.Errorf("%T %s is still there", object, object.GetName())
		}
		return client.IgnoreNotFound(err)
	})
}

// events waits until there are events for an object with all of these reasons.
func (e *env) events(name string, reasons ...string) {
	e.Helper()
	e.eventually(func() error {
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
				errs = append(errs, fmt.Errorf("no event %s for %s, only %v", reason, name, seen))
			}
		}
		return errors.Join(errs...)
	})
}
