// SPDX-License-Identifier: Apache-2.0

package memcached_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"trueup.dev/informer"
	"trueup.dev/informer/memcached"
	"trueup.dev/operator"
	"trueup.dev/resource"
)

// Keep the ConfigMaps of a controller in memcached instead of in its memory.
func ExampleNewStore() {
	kind := resource.Kind{Schema: resource.NewSimpleSchema("", "v1", &corev1.ConfigMap{}, &corev1.ConfigMapList{})}
	add := func(mgr ctrl.Manager, controller *operator.InformerController) error {
		store, err := memcached.NewStore(memcached.Config{Addrs: []string{"127.0.0.1:11211"}, KeyPrefix: "mycontroller:"})
		if err != nil {
			return err
		}
		informer, err := informer.NewCustomCache(kind, mgr, store, informer.Options{
			LabelFilters: []string{"team=blue"},
		})
		if err != nil {
			return err
		}
		return controller.AddInformer(informer, "configmaps")
	}
	_ = add
}

// Validate reports all problems of a config at once.
func ExampleConfig_Validate() {
	fmt.Println(memcached.Config{KeyPrefix: "my controller:"}.Validate())
	// Output:
	// memcached store must have either Addrs or ServerSelector
	// memcached store must have a KeyPrefix of at most 100 characters without spaces, got "my controller:"
}
