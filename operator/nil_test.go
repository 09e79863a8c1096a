// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"trueup.dev/operator"
	"trueup.dev/resource"
)

func TestOpinionatedRetryDequeuePolicy_WithNilObjects(t *testing.T) {
	some := version("a", 1, 1)
	for name, tc := range map[string]struct {
		newObject, retryObject resource.Object
		newAction, retryAction operator.ResourceAction
		want                   bool
	}{
		"no objects": {newAction: operator.ResourceActionUpdate, retryAction: operator.ResourceActionUpdate},
		"no new object": {
			retryObject: some, newAction: operator.ResourceActionUpdate, retryAction: operator.ResourceActionUpdate,
		},
		"no retried object": {
			newObject: some, newAction: operator.ResourceActionUpdate, retryAction: operator.ResourceActionUpdate,
		},
		"a nil pointer": {
			newObject: (*corev1.ConfigMap)(nil), newAction: operator.ResourceActionUpdate,
			retryObject: some, retryAction: operator.ResourceActionUpdate,
		},
		"a deletion": {
			newAction: operator.ResourceActionDelete, retryAction: operator.ResourceActionUpdate, want: true,
		},
		"a deletion, retried": {newAction: operator.ResourceActionDelete, retryAction: operator.ResourceActionDelete},
	} {
		t.Run(name, func(t *testing.T) {
			if got := operator.OpinionatedRetryDequeuePolicy(
				tc.newAction, tc.newObject, tc.retryAction, tc.retryObject, errTest,
			); got != tc.want {
				t.Errorf("replaces the retry = %t, want %t", got, tc.want)
			}
		})
	}
}

// A nil argument is a set-up error, not a panic.
func TestInformers_WithoutWhatTheyNeed(t *testing.T) {
	kind := resource.Kind{Schema: resource.NewSimpleSchema("", "v1", &corev1.ConfigMap{}, &corev1.ConfigMapList{})}
	supplied := operator.CustomCacheInformerSupplier(nil)
	for name, tc := range map[string]struct {
		do   func() error
		want string
	}{
		"an informer without a cluster": {func() error {
			_, err := operator.DefaultInformerSupplier(kind, nil, operator.InformerOptions{})
			return err
		}, "informer of ConfigMap.v1 must have a cluster"},
		"a custom cache without a cluster": {func() error {
			_, err := operator.NewCustomCacheInformer(kind, nil, operator.NewMemoryStore(), operator.InformerOptions{})
			return err
		}, "informer of ConfigMap.v1 must have a cluster"},
		"a supplier without a function": {func() error {
			_, err := supplied(kind, nil, operator.InformerOptions{})
			return err
		}, "informer of ConfigMap.v1 must have a function that returns its store"},
		"an informer made of nothing": {func() error {
			_, err := operator.WithInformer(nil, "it", operator.NewInformer(nil, &corev1.ConfigMap{}))
			return err
		}, `informer "it" must not be nil`},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tc.do(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v, want %q", err, tc.want)
			}
		})
	}
}
