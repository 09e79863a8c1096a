// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"trueup.dev/converge"
)

// AnnotatedReconciler keeps a Service whose annotations are the data of a ConfigMap.
type AnnotatedReconciler struct {
	client.Client

	annotate func(*corev1.Service, *corev1.ConfigMap)
}

func (r *AnnotatedReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	config := &corev1.ConfigMap{}
	if err := r.Get(ctx, req.NamespacedName, config); err != nil || config.DeletionTimestamp != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: req.Namespace, Name: req.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, service, func() error {
		r.annotate(service, config)
		service.Spec.Ports = []corev1.ServicePort{{Protocol: corev1.ProtocolTCP, Port: 80, TargetPort: intstr.FromInt32(80)}}
		return controllerutil.SetControllerReference(config, service, r.Scheme())
	})
	return ctrl.Result{}, err
}

func mergedAnnotations(service *corev1.Service, config *corev1.ConfigMap) {
	// region states-wrong
	// Wrong: the annotation of a key that users remove stays.
	for key, value := range config.Data {
		metav1.SetMetaDataAnnotation(&service.ObjectMeta, "example.com/"+key, value)
	}
	// endregion
}

func replacedAnnotations(service *corev1.Service, config *corev1.ConfigMap) {
	// region states-right
	// Right: what is not wanted is removed.
	for key := range service.Annotations {
		if strings.HasPrefix(key, "example.com/") {
			delete(service.Annotations, key)
		}
	}
	for key, value := range config.Data {
		metav1.SetMetaDataAnnotation(&service.ObjectMeta, "example.com/"+key, value)
	}
	// endregion
}

func annotated(annotate func(*corev1.Service, *corev1.ConfigMap)) converge.Scenario {
	config := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Data: map[string]string{"team": "a"},
	}
	// region states-run
	scenario := converge.Scenario{
		Scheme: scheme,
		For:    &corev1.ConfigMap{},
		Setup: func(mgr manager.Manager) error {
			return ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Owns(&corev1.Service{}).Complete(
				&AnnotatedReconciler{mgr.GetClient(), annotate},
			)
		},
		Steps: converge.Lifecycle(config),
		Space: converge.Space{
			Skip: map[string]string{"binaryData": "annotations are text", "immutable": "users change the data"},
		},
	}
	// endregion
	return scenario
}

func TestStatesGuide(t *testing.T) {
	report, err := converge.CheckStates(t, annotated(mergedAnnotations), converge.DefaultStatesOptions())
	if err != nil || report.Failure == nil {
		t.Fatalf("found nothing, error %v", err)
	}
	failure := report.Failure.String()
	if report, err = converge.CheckStates(t, annotated(replacedAnnotations), converge.DefaultStatesOptions()); err != nil {
		t.Fatal(err)
	}
	if report.Failure != nil {
		t.Fatal(report.Failure)
	}
	showPrinted(t, "converge/states.md", map[string]string{"states-failure": failure})
}
