// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"trueup.dev/internal/testkit/fixture"
)

func TestStore_addsLists(t *testing.T) {
	c, tracker := mustFake(t, Options{})
	if err := tracker.Add(&corev1.ConfigMapList{
		Items: []corev1.ConfigMap{{ObjectMeta: objectMeta("one")}, {ObjectMeta: objectMeta("two")}},
	}); err != nil {
		t.Fatal(err)
	}
	list := &corev1.ConfigMapList{}
	if err := c.List(t.Context(), list); err != nil || len(list.Items) != 2 {
		t.Errorf("items = %v, error = %v", list.Items, err)
	}
}

// Fields that are not set are not applied.
func TestStore_apply(t *testing.T) {
	for _, realistic := range []bool{false, true} {
		t.Run(fmt.Sprintf("realistic=%t", realistic), func(t *testing.T) {
			labels := map[string]string{"app": "one"}
			deployment := &appsv1.Deployment{ObjectMeta: objectMeta("one"), Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}},
			}}
			deployment.Status.Replicas = 2
			c, _ := mustFake(t, Options{Given: []client.Object{deployment}, Realistic: realistic})
			apply := func(content string) (err error) {
				u := &unstructured.Unstructured{}
				if err := u.UnmarshalJSON(
					[]byte(
						`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"my-namespace","name":"one"},` + content +
							`}`,
					),
				); err != nil {
					return err
				}
				return c.Apply(
					t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("me"), client.ForceOwnership,
				)
			}
			if err := apply(`"spec":{"replicas":3},"status":{"replicas":7}`); err != nil {
				t.Fatal(err)
			}
			got := &appsv1.Deployment{}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(deployment), got); err != nil {
				t.Fatal(err)
			}
			want := deployment.DeepCopy()
			want.ResourceVersion, want.Spec.Replicas, want.Generation = "1000", new(int32(3)), got.Generation
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if err := apply(
				`"metadata":{"namespace":"my-namespace","name":"one","resourceVersion":"7"}`,
			); !apierrs.IsConflict(err) {
				t.Errorf("error of a stale resource version = %v", err)
			}
		})
	}
}

// A status that is not a subresource is applied with the other fields.
func TestStore_applyStatus(t *testing.T) {
	for _, realistic := range []bool{false, true} {
		c, _ := mustFake(t, Options{
			Realistic: realistic, Given: []client.Object{&fixture.ResourceEmptyStatus{ObjectMeta: objectMeta("one")}},
		})
		obj := &unstructured.Unstructured{
			Object: map[string]any{"status": map[string]any{"fields": map[string]any{"a": "1"}}},
		}
		obj.SetGroupVersionKind(fixture.GroupVersion.WithKind("ResourceEmptyStatus"))
		for _, name := range []string{"one", "two"} {
			obj.SetName(name)
			obj.SetNamespace("my-namespace")
			ac := client.ApplyConfigurationFromUnstructured(obj.DeepCopy())
			if err := c.Apply(t.Context(), ac, client.FieldOwner("me")); err != nil {
				t.Fatal(err)
			}
			got := &fixture.ResourceEmptyStatus{}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), got); err != nil || got.Status.Fields["a"] != "1" {
				t.Errorf("realistic=%t: %s = %v, error = %v", realistic, name, got, err)
			}
		}
	}
}

// Applying the status of a missing object does not create it.
func TestStore_applyStatusOfMissing(t *testing.T) {
	for _, realistic := range []bool{false, true} {
		c, _ := mustFake(t, Options{Realistic: realistic})
		ac := client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "one"}, "status": map[string]any{
				"phase": "Running",
			},
		}})
		if err := c.Status().Apply(t.Context(), ac, client.FieldOwner("me")); !apierrs.IsNotFound(err) {
			t.Errorf("realistic=%t: error = %v", realistic, err)
		}
	}
}

// An apply works if an interceptor replaces its options.
func TestStore_applyIntercepted(t *testing.T) {
	c, _ := mustFake(t, Options{Build: func(b *fake.ClientBuilder) *fake.ClientBuilder {
		return b.WithInterceptorFuncs(interceptor.Funcs{
			Apply: func(ctx context.Context, c client.WithWatch, ac runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
				return c.Apply(ctx, ac, client.FieldOwner("other"))
			},
		})
	}})
	for _, value := range []string{"1", "2"} {
		ac := client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
				"name": "one",
			}, "data": map[string]any{"a": value},
		}})
		if err := c.Apply(t.Context(), ac, client.FieldOwner("me")); err != nil {
			t.Fatal(err)
		}
	}
	got := &corev1.ConfigMap{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "one"}, got); err != nil || got.Data["a"] != "2" {
		t.Errorf("got %v, error = %v", got.Data, err)
	}
}
