// SPDX-License-Identifier: Apache-2.0

package informer_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"trueup.dev/informer"
	"trueup.dev/resource"
)

// A nil argument is a set-up error, not a panic.
func TestInformers_RequireTheirArguments(t *testing.T) {
	kind := resource.Kind{Schema: resource.NewSimpleSchema("", "v1", &corev1.ConfigMap{}, &corev1.ConfigMapList{})}
	supplied := informer.CustomCacheSupplier(nil)
	for name, tc := range map[string]struct {
		do   func() error
		want string
	}{
		"an informer without a cluster": {func() error {
			_, err := informer.DefaultSupplier(kind, nil, informer.Options{})
			return err
		}, "informer of ConfigMap.v1 must have a cluster"},
		"a custom cache without a cluster": {func() error {
			_, err := informer.NewCustomCache(kind, nil, informer.NewMemoryStore(), informer.Options{})
			return err
		}, "informer of ConfigMap.v1 must have a cluster"},
		"a supplier without a function": {func() error {
			_, err := supplied(kind, nil, informer.Options{})
			return err
		}, "informer of ConfigMap.v1 must have a function that returns its store"},
		"an informer made of nothing": {func() error {
			_, err := informer.View(nil, "it", informer.New(nil, &corev1.ConfigMap{}))
			return err
		}, `informer "it" must not be nil`},
		"no informer": {func() error {
			_, err := informer.View(nil, "it", nil)
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
