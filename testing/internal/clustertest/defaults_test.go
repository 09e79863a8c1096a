// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func newDeployment() *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{{Name: "web", Image: "nginx", Ports: []corev1.ContainerPort{{ContainerPort: 80}}}},
				},
			},
		},
	}
}

func newService() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}, Selector: map[string]string{"app": "web"}},
	}
}

// Updates contain the fields that the server has added. A table for the API in memory does not expect them.
func TestDefaultsAreNotCompared(t *testing.T) {
	for name, given := range map[string]client.Object{
		"Deployment": newDeployment(),
		"Service":    newService(),
		"Namespace":  &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "another-one"}},
	} {
		for how, convert := range map[string]func(client.Object) client.Object{
			"typed": func(obj client.Object) client.Object { return obj },
			"unstructured": func(obj client.Object) client.Object {
				u := &unstructured.Unstructured{}
				if err := scheme.Convert(obj, u, nil); err != nil {
					t.Fatal(err)
				}
				unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
				return u
			},
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				updated := given.DeepCopyObject().(client.Object)
				updated.SetLabels(map[string]string{"updated": "yes"})
				again := updated.DeepCopyObject().(client.Object)
				again.SetLabels(map[string]string{"updated": "again"})
				runOnBoth(t, testCase{
					GivenObjects:  []client.Object{given},
					ExpectUpdates: []client.Object{convert(updated), convert(again)},
				}, func(w *world) {
					read := convert(given)
					w.must(w.Get(w.ctx, client.ObjectKeyFromObject(read), read))
					read.SetLabels(map[string]string{"updated": "yes"})
					w.must(w.Update(w.ctx, read))
					read.SetLabels(map[string]string{"updated": "again"})
					w.must(w.Update(w.ctx, read))
				})
			})
		}
	}
}

// The same applies to objects that the case has created or applied itself.
func TestDefaultsOfCreatedObjectsAreNotCompared(t *testing.T) {
	updated := newDeployment()
	updated.Labels = map[string]string{"updated": "yes"}
	runOnBoth(t, testCase{
		ExpectCreates: []client.Object{newDeployment()},
		ExpectUpdates: []client.Object{updated},
	}, func(w *world) {
		created := newDeployment()
		w.must(w.Create(w.ctx, created))
		created.Labels = updated.Labels
		w.must(w.Update(w.ctx, created))
	})
}

// In memory, the service is as desired. On a server, this reconciler removes defaults, without an effect.
func TestUpdatesThatChangeNothing(t *testing.T) {
	runOnBoth(t, testCase{GivenObjects: []client.Object{newService()}}, func(w *world) {
		read := &corev1.Service{}
		w.must(w.Get(w.ctx, client.ObjectKeyFromObject(newService()), read))
		if desired := newService().Spec; !equality.Semantic.DeepEqual(desired, read.Spec) {
			read.Spec = desired
			w.must(w.Update(w.ctx, read))
			if read.ResourceVersion != "999" {
				w.Errorf("the version is %s", read.ResourceVersion)
			}
		}
	})
}
