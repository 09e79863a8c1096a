// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"trueup.dev/reconcilers"
)

// region scale-cache
func NewManager(cfg *rest.Config) (ctrl.Manager, error) {
	return ctrl.NewManager(cfg, ctrl.Options{
		Cache: cache.Options{DefaultTransform: reconcilers.CacheTransform()},
	})
}

// endregion

func TestScale_theCacheHoldsLessOfEachObject(t *testing.T) {
	if _, err := NewManager(&rest.Config{}); err != nil {
		t.Fatal(err)
	}
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
		Annotations:   map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "example.com/kept": "yes"},
	}}
	if _, err := reconcilers.CacheTransform()(object); err != nil {
		t.Fatal(err)
	}
	if len(object.ManagedFields) > 0 || object.Annotations[corev1.LastAppliedConfigAnnotation] != "" ||
		object.Annotations["example.com/kept"] != "yes" {
		t.Errorf("got %+v", object.ObjectMeta)
	}
}
