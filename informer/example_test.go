// SPDX-License-Identifier: Apache-2.0

package informer_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"trueup.dev/informer"
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

// A controller of Secrets keeps only the Secrets of one team in memory, independently of the manager's cache.
func ExampleView() {
	setup := func(ctx context.Context, mgr ctrl.Manager) error {
		blue, err := informer.DefaultSupplier(secrets, mgr, informer.Options{
			LabelFilters: []string{"team=blue"},
		})
		if err != nil {
			return err
		}
		view, err := informer.View(mgr, "blue-secrets", blue)
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
func ExampleNew() {
	supply := func(mgr ctrl.Manager) (informer.Informer, error) {
		objects, err := cache.New(mgr.GetConfig(), cache.Options{
			Scheme: mgr.GetScheme(), DefaultTransform: cache.TransformStripManagedFields(),
		})
		if err != nil {
			return nil, err
		}
		return informer.New(objects, &corev1.Secret{}), nil
	}
	_ = supply
}

// Keep only the metadata of Secrets in memory.
func ExampleMetadataOnlySupplier() {
	supply := func(mgr ctrl.Manager) (informer.Informer, error) {
		return informer.MetadataOnlySupplier(secrets, mgr, informer.Options{Namespaces: []string{"default"}})
	}
	_ = supply
}

// Keep objects in a store, and only their metadata in a handler.
func ExampleNewCustomCache() {
	handler := operator.WatcherReconciler(secretWatcher{})
	handler.PreviousState = operator.PreviousMetadata
	supply := func(mgr ctrl.Manager) (informer.Informer, error) {
		return informer.NewCustomCache(secrets, mgr, informer.NewMemoryStore(), informer.Options{})
	}
	_ = supply
}

// Use one store for all kinds.
func ExampleCustomCacheSupplier() {
	store := informer.NewMemoryStore()
	supplier := informer.CustomCacheSupplier(func(resource.Kind) (informer.Store, error) { return store, nil })
	supply := func(mgr ctrl.Manager) (informer.Informer, error) {
		return supplier(secrets, mgr, informer.Options{})
	}
	_ = supply
}

// Watch the objects of a kind whose CustomResourceDefinition may be installed later.
func ExampleWhileServed() {
	kind := resource.Kind{Schema: resource.NewSimpleSchema(
		"example.com", "v1", &corev1.Secret{}, &corev1.SecretList{}, resource.WithKind("Certificate"),
	)}
	add := func(mgr ctrl.Manager, controller *operator.InformerController, watcher operator.ResourceWatcher) error {
		objects, err := informer.MetadataOnlySupplier(kind, mgr, informer.Options{})
		if err != nil {
			return err
		}
		return errors.Join(
			controller.AddInformer(informer.WhileServed(objects), "certificates"),
			controller.AddWatcher(watcher, "certificates"),
		)
	}
	_ = add
}

func ExampleMemoryStore() {
	store := informer.NewMemoryStore()
	_ = store.Set(context.Background(), "key", []byte("value"))
	values, _ := store.Get(context.Background(), []string{"key", "other"})
	fmt.Printf("%s %d\n", values["key"], store.Len())
	// Output: value 1
}
