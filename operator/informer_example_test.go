// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"trueup.dev/operator"
	"trueup.dev/reconcilers"
	"trueup.dev/resource"
)

var secrets = resource.Kind{Schema: resource.NewSimpleSchema("", "v1", &corev1.Secret{}, &corev1.SecretList{})}

// secretWatcher prints the events of Secrets.
type secretWatcher struct{}

func (secretWatcher) Add(_ context.Context, secret *corev1.Secret) error {
	fmt.Println("new:", secret.Name)
	return nil
}

func (secretWatcher) Update(_ context.Context, _, secret *corev1.Secret) error {
	fmt.Println("changed:", secret.Name)
	return nil
}

func (secretWatcher) Delete(_ context.Context, secret *corev1.Secret) error {
	fmt.Println("deleted:", secret.Name)
	return nil
}

// A controller of Secrets keeps only those of one team in memory, independently of the manager's cache.
func ExampleWithInformer() {
	setup := func(ctx context.Context, mgr ctrl.Manager) error {
		informer, err := operator.DefaultInformerSupplier(secrets, mgr, operator.InformerOptions{
			LabelFilters: []string{"team=blue"},
		})
		if err != nil {
			return err
		}
		view, err := operator.WithInformer(mgr, "blue-secrets", informer)
		if err != nil {
			return err
		}
		controller := &operator.Controller[*corev1.Secret]{
			Name:     "blue-secrets",
			Handlers: []reconcilers.SubReconciler[*corev1.Secret]{operator.WatcherReconciler(secretWatcher{})},
			Config:   reconcilers.NewConfig(view, nil, 10*time.Hour),
		}
		return controller.SetupWithManager(ctx, view)
	}
	_ = setup
}

// Any controller-runtime cache can be the informer of one kind.
func ExampleNewInformer() {
	informer := func(mgr ctrl.Manager) (operator.Informer, error) {
		objects, err := cache.New(mgr.GetConfig(), cache.Options{
			Scheme: mgr.GetScheme(), DefaultTransform: cache.TransformStripManagedFields(),
		})
		if err != nil {
			return nil, err
		}
		return operator.NewInformer(objects, &corev1.Secret{}), nil
	}
	_ = informer
}

// Keep only the metadata of Secrets in memory.
func ExampleMetadataOnlyInformerSupplier() {
	informer := func(mgr ctrl.Manager) (operator.Informer, error) {
		return operator.MetadataOnlyInformerSupplier(secrets, mgr, operator.InformerOptions{Namespaces: []string{"default"}})
	}
	_ = informer
}

// Keep objects in a store, and only their metadata in a handler.
func ExampleNewCustomCacheInformer() {
	handler := operator.WatcherReconciler(secretWatcher{})
	handler.PreviousState = operator.PreviousMetadata
	informer := func(mgr ctrl.Manager) (operator.Informer, error) {
		return operator.NewCustomCacheInformer(secrets, mgr, operator.NewMemoryStore(), operator.InformerOptions{})
	}
	_ = informer
}

// Use one store for all kinds.
func ExampleCustomCacheInformerSupplier() {
	store := operator.NewMemoryStore()
	supplier := operator.CustomCacheInformerSupplier(func(resource.Kind) (operator.Store, error) { return store, nil })
	informer := func(mgr ctrl.Manager) (operator.Informer, error) {
		return supplier(secrets, mgr, operator.InformerOptions{})
	}
	_ = informer
}

func ExampleMemoryStore() {
	store := operator.NewMemoryStore()
	_ = store.Set(context.Background(), "key", []byte("value"))
	values, _ := store.Get(context.Background(), []string{"key", "other"})
	fmt.Printf("%s %d\n", values["key"], store.Len())
	// Output: value 1
}

// anySecret is a watcher for objects of any type.
type anySecret struct{}

func (anySecret) Add(_ context.Context, object resource.Object) error {
	fmt.Println("new:", object.GetName())
	return nil
}

func (anySecret) Update(context.Context, resource.Object, resource.Object) error { return nil }

func (anySecret) Delete(context.Context, resource.Object) error { return nil }

// A program that watches Secrets.
func ExampleInformerController() {
	run := func(ctx context.Context) error {
		mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{})
		if err != nil {
			return err
		}
		informer, err := operator.DefaultInformerSupplier(secrets, mgr, operator.InformerOptions{})
		if err != nil {
			return err
		}
		config := operator.DefaultInformerControllerConfig()
		config.Manager = mgr
		config.ErrorHandler = func(_ context.Context, err error) { fmt.Println("failed:", err) }
		controller := operator.NewInformerController(config)
		if err := controller.AddInformer(informer, "secrets"); err != nil {
			return err
		}
		if err := controller.AddWatcher(anySecret{}, "secrets"); err != nil {
			return err
		}
		return controller.Run(ctx)
	}
	_ = run
}
