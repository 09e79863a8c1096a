// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"trueup.dev/informer"
	"trueup.dev/operator"
	"trueup.dev/resource"
)

var secrets = resource.Kind{Schema: resource.NewSimpleSchema("", "v1", &corev1.Secret{}, &corev1.SecretList{})}

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
		objects, err := informer.DefaultSupplier(secrets, mgr, informer.Options{})
		if err != nil {
			return err
		}
		config := operator.DefaultInformerControllerConfig()
		config.Manager = mgr
		config.ErrorHandler = func(_ context.Context, err error) { fmt.Println("failed:", err) }
		controller := operator.NewInformerController(config)
		if err := controller.AddInformer(objects, "secrets"); err != nil {
			return err
		}
		if err := controller.AddWatcher(anySecret{}, "secrets"); err != nil {
			return err
		}
		return controller.Run(ctx)
	}
	_ = run
}
