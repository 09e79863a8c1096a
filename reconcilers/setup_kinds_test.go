// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// childOf returns a reconciler of children that it does not desire.
func childOf[CT client.Object, CLT client.ObjectList]() reconcilers.SubReconciler[*fixture.Resource] {
	return &reconcilers.ChildReconciler[*fixture.Resource, CT, CLT]{
		DesiredChild:               func(context.Context, *fixture.Resource) (child CT, err error) { return child, nil },
		ReflectChildStatusOnParent: func(context.Context, *fixture.Resource, CT, error) {},
		MergeBeforeUpdate:          func(_, _ CT) {},
	}
}

// What does set-up say about kinds that the scheme has not, or only a part of them?
func TestSetup_Kinds(t *testing.T) {
	withoutList := func(kinds ...runtime.Object) *runtime.Scheme {
		scheme := runtime.NewScheme()
		scheme.AddKnownTypes(fixture.GroupVersion, &fixture.Resource{}, &fixture.ResourceList{})
		scheme.AddKnownTypes(corev1.SchemeGroupVersion, kinds...)
		metav1.AddToGroupVersion(scheme, fixture.GroupVersion)
		return scheme
	}
	parentOnly := runtime.NewScheme()
	parentOnly.AddKnownTypes(fixture.GroupVersion, &fixture.Resource{})
	for name, c := range map[string]struct {
		scheme     *runtime.Scheme
		reconciler reconcilers.SubReconciler[*fixture.Resource]
		want       string
	}{
		"a child that the scheme has not": {
			fixture.NewScheme(),
			childOf[*apiextensionsv1.CustomResourceDefinition, *apiextensionsv1.CustomResourceDefinitionList](),
			`ChildReconciler "CustomResourceDefinitionChildReconciler": the scheme does not have the kind of ` +
				`*v1.CustomResourceDefinition: add its package with AddToScheme, or set apiVersion and kind in ChildType if ` +
				`it is a duck type: object must directly define APIVersion and Kind`,
		},
		"a child as metadata": {
			fixture.NewScheme(), childOf[*metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList](),
			`ResourceReconciler "ResourceResourceReconciler" must have a valid Reconciler: ` +
				`ChildReconciler "PartialObjectMetadataChildReconciler" must not have the ChildType PartialObjectMetadata, which has no spec: use the type of the child, ` +
				`or unstructured.Unstructured`,
		},
		"a child without its list": {
			withoutList(&corev1.ConfigMap{}), childOf[*corev1.ConfigMap, *corev1.ConfigMapList](),
			`ResourceResourceReconciler: the scheme has ConfigMap, but not ConfigMapList, without which no cache can watch it: ` +
				`add &ConfigMapList{} to SchemeBuilder.Register`,
		},
		"a parent without its list": {
			parentOnly, &syncReconciler{Sync: func(context.Context, *fixture.Resource) error { return nil }},
			`ResourceResourceReconciler: the scheme has Resource, but not ResourceList, without which no cache can watch it: ` +
				`add &ResourceList{} to SchemeBuilder.Register`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			mgr, err := ctrl.NewManager(&rest.Config{Host: "http://" + closedPort(t)}, ctrl.Options{
				Scheme: c.scheme, Metrics: server.Options{BindAddress: "0"},
				Controller: ctrlconfig.Controller{SkipNameValidation: new(true)},
			})
			wantErr(t, nil, err)
			r := &resourceReconciler{Config: reconcilers.NewConfig(mgr, nil, time.Hour), Reconciler: c.reconciler}
			wantText(t, c.want, r.SetupWithManager(t.Context(), mgr))
		})
	}
}
