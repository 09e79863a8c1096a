// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"strconv"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// BenchmarkManageInSync measures object managers with a Deployment that is in sync: the version is known, or a new one
// as after each change of the status.
func BenchmarkManageInSync(b *testing.B) {
	labels := map[string]string{"app": "web"}
	desired := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(3)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "web", Image: "web:1", Ports: []corev1.ContainerPort{{ContainerPort: 80, Protocol: corev1.ProtocolTCP}},
					Env: []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}},
				}}},
			},
		},
	}
	actual := desired.DeepCopy()
	actual.UID, actual.Generation, actual.CreationTimestamp = "1", 1, metav1.Now()
	actual.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: "bench", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "apps/v1", FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:app":{}}},"f:spec":{"f:replicas":{},"f:selector":{},` +
			`"f:template":{"f:metadata":{"f:labels":{"f:app":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},` +
			`"f:env":{"k:{\"name\":\"A\"}":{".":{},"f:name":{},"f:value":{}},"k:{\"name\":\"B\"}":{".":{},"f:name":{},` +
			`"f:value":{}}},"f:image":{},"f:name":{},"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},` +
			`"f:containerPort":{},"f:protocol":{}}}}}}}}}`),
	}}
	c := fake.NewClientBuilder().WithScheme(fixture.NewScheme()).Build() // it is not used
	config := reconcilers.Config{Client: c}
	ctx := reconcilers.StashOriginalConfig(reconcilers.StashConfig(b.Context(), config), config)
	parent := newResource()

	type manager interface {
		Manage(context.Context, client.Object, *appsv1.Deployment, *appsv1.Deployment) (*appsv1.Deployment, error)
	}
	updating := &reconcilers.UpdatingObjectManager[*appsv1.Deployment]{
		MergeBeforeUpdate: func(current, desired *appsv1.Deployment) {
			current.Labels, current.Spec = desired.Labels, desired.Spec
		},
	}
	applying := &reconcilers.ApplyingObjectManager[*appsv1.Deployment]{FieldOwner: "bench"}
	for _, bench := range []struct {
		name    string
		manager manager
		changes bool
	}{
		{"Updating", updating, false},
		{"Updating/NewVersion", updating, true},
		{"Applying", applying, false},
		{"Applying/NewVersion", applying, true},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				if bench.changes {
					actual.ResourceVersion = strconv.Itoa(1000 + n)
				}
				managed, err := bench.manager.Manage(ctx, parent, actual, desired)
				if err != nil || managed != actual {
					b.Fatalf("%v, error %v", managed, err)
				}
			}
		})
	}
}
