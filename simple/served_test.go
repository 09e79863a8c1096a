// SPDX-License-Identifier: Apache-2.0

package simple_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr/funcr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"trueup.dev/informer"
	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/operator"
	"trueup.dev/resource"
	"trueup.dev/simple"
)

// optional is a kind whose CustomResourceDefinition is installed and deleted while its controllers run.
type optional struct {
	*env
	resource.Kind
	definition *apiextensionsv1.CustomResourceDefinition
}

func (e *env) optional(kind string, object resource.Object, list client.ObjectList) *optional {
	schema := resource.NewSimpleSchema(group, "v1", object, list, resource.WithKind(kind))
	o := &optional{e, resource.Kind{Schema: schema}, crd(kind, schema.Plural(), "v1")}
	e.Cleanup(func() { e.Must(client.IgnoreNotFound(e.Delete(context.Background(), o.definition.DeepCopy()))) })
	return o
}

func (o *optional) install() {
	o.Helper()
	o.Must(o.Create(o.Context(), o.definition.DeepCopy()))
}

func (o *optional) uninstall() {
	o.Helper()
	definition := o.definition.DeepCopy()
	o.Must(o.Delete(o.Context(), definition))
	o.Eventually(func() error {
		err := o.Get(o.Context(), client.ObjectKeyFromObject(definition), definition)
		if apierrs.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the CustomResourceDefinition exists: %w", err)
	})
}

// comesAndGoes installs and deletes the definition repeatedly, with an object. The handler is called each time.
func (o *optional) comesAndGoes(calls *record) {
	o.Helper()
	for n := range 2 {
		called := func(call string) {
			o.Helper()
			o.Eventually(func() error {
				if got := times(calls.all(), call); got != n+1 {
					return fmt.Errorf("%d calls %q, want %d: %q", got, call, n+1, calls.all())
				}
				return nil
			})
		}
		o.inactive(1)
		o.install()
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(o.GroupVersionKind())
		object.SetNamespace(o.Namespace)
		object.SetName("it")
		o.Eventually(func() error { return o.Create(o.Context(), object.DeepCopy()) })
		called("add it")
		o.inactive(0)
		o.uninstall()
		called("delete it")
	}
	o.inactive(1)
}

// inactive waits until a number of controllers wait for the kind.
func (o *optional) inactive(want float64) {
	o.Helper()
	o.Eventually(func() error {
		got := apitest.Counted(o, "trueup_inactive_steps", map[string]string{"kind": o.GroupVersionKind().String()})
		if got != want {
			return fmt.Errorf("trueup_inactive_steps is %v, want %v", got, want)
		}
		return nil
	})
}

// An app starts without one of its kinds, and is ready.
func TestApp_WhileServed(t *testing.T) {
	if testing.Short() {
		t.Skip("waits until it is noticed that a kind is not served")
	}
	e := newEnv(t)
	parcels := e.optional("Parcel", &GadgetV1{}, &GadgetV1List{})
	crates := e.optional("Crate", &GadgetV2{}, &GadgetV2List{})
	crates.definition.Name = "cratez." + group
	crates.definition.Spec.Names.Plural = "cratez"
	var mu sync.Mutex
	logged := ""
	var calls, others record
	config := e.config("parcels")
	config.HealthBindAddress = address(e.FreePort())
	config.ManagedKinds = []simple.AppManagedKind{
		{Kind: widgetKind, Watcher: others.watcher()},
		{Kind: parcels.Kind, Watcher: calls.watcher(), ReconcileOptions: simple.ReconcileOptions{WhileServed: true}},
	}
	config.UnmanagedKinds = []simple.AppUnmanagedKind{
		{Kind: crates.Kind, Watcher: others.watcher(), ReconcileOptions: simple.ReconcileOptions{WhileServed: true}},
	}
	config.ManagerOptions = func(options *ctrl.Options) {
		options.Logger = funcr.New(func(prefix, args string) {
			mu.Lock()
			defer mu.Unlock()
			logged += prefix + " " + args + "\n"
		}, funcr.Options{})
	}
	e.start(config)
	ready := func() error {
		_, err := get("http://" + config.HealthBindAddress + "/readyz")
		return err
	}
	e.Eventually(ready)
	e.Add(newWidget("widget", ""))
	e.Eventually(func() error { return others.has("add widget") })
	parcels.comesAndGoes(&calls)
	e.Must(ready())

	crates.install()
	e.Eventually(func() error {
		mu.Lock()
		defer mu.Unlock()
		if want := `Plural is \"crates\"`; !strings.Contains(logged, want) {
			return fmt.Errorf("the log does not contain %s:\n%s", want, logged)
		}
		return nil
	})
}

// The informers of a controller stop and start with their kind, wherever they keep the objects.
func TestInformerController_WhileServed(t *testing.T) {
	if testing.Short() {
		t.Skip("waits until it is noticed that a kind is not served")
	}
	t.Parallel()
	for name, supplier := range map[string]informer.Supplier{
		"Box": informer.DefaultSupplier,
		"Bin": informer.CustomCacheSupplier(func(resource.Kind) (informer.Store, error) {
			return informer.NewMemoryStore(), nil
		}),
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			kind, calls := e.optional(name, &GadgetV1{}, &GadgetV1List{}), &record{}
			scheme := runtime.NewScheme()
			e.Must(errors.Join(clientgoscheme.AddToScheme(scheme), kind.AddToScheme(scheme)))
			mgr, err := ctrl.NewManager(e.RESTConfig(), ctrl.Options{
				Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
			})
			e.Must(err)
			objects, err := supplier(kind.Kind, mgr, informer.Options{Namespaces: []string{e.Namespace}})
			e.Must(err)
			controller := operator.NewInformerController(operator.InformerControllerConfig{Manager: mgr})
			e.Must(errors.Join(
				controller.AddInformer(informer.WhileServed(objects), "it"), controller.AddWatcher(calls.watcher(), "it"),
			))
			e.Go("the controller", controller.Run)
			kind.comesAndGoes(calls)
		})
	}
}
