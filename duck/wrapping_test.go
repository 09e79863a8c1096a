// SPDX-License-Identifier: Apache-2.0

package duck_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"trueup.dev/duck"
)

// recorder records the objects that reach the wrapped client, and returns no results.
type recorder struct {
	objects []any
}

func (r *recorder) saw(objects ...any) error {
	r.objects = append(r.objects, objects...)
	return nil
}

func (r *recorder) client() client.WithWatch {
	return interceptor.NewClient(cluster(), interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
			return r.saw(obj)
		},
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			return r.saw(list)
		},
		Create: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.CreateOption) error {
			return r.saw(obj)
		},
		Delete: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.DeleteOption) error {
			return r.saw(obj)
		},
		DeleteAllOf: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.DeleteAllOfOption) error {
			return r.saw(obj)
		},
		Update: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.UpdateOption) error {
			return r.saw(obj)
		},
		Patch: func(
			_ context.Context, _ client.WithWatch, obj client.Object, patch client.Patch, _ ...client.PatchOption,
		) error {
			return r.saw(obj, patch)
		},
		Apply: func(_ context.Context, _ client.WithWatch, obj runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
			return r.saw(obj)
		},
		Watch: func(
			_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption,
		) (watch.Interface, error) {
			return watch.NewEmptyWatch(), r.saw(list)
		},
		SubResourceGet: func(
			_ context.Context, _ client.Client, sub string, obj, subResource client.Object, _ ...client.SubResourceGetOption,
		) error {
			return r.saw(sub, obj, subResource)
		},
		SubResourceCreate: func(
			_ context.Context, _ client.Client, sub string, obj, subResource client.Object, _ ...client.SubResourceCreateOption,
		) error {
			return r.saw(sub, obj, subResource)
		},
		SubResourceUpdate: func(
			_ context.Context, _ client.Client, sub string, obj client.Object, _ ...client.SubResourceUpdateOption,
		) error {
			return r.saw(sub, obj)
		},
		SubResourcePatch: func(
			_ context.Context, _ client.Client, sub string, obj client.Object, patch client.Patch,
			_ ...client.SubResourcePatchOption,
		) error {
			return r.saw(sub, obj, patch)
		},
		SubResourceApply: func(
			_ context.Context, _ client.Client, sub string, obj runtime.ApplyConfiguration, _ ...client.SubResourceApplyOption,
		) error {
			return r.saw(sub, obj)
		},
	})
}

// An object that is not a duck is passed to the wrapped client without a copy.
func TestPassThrough(t *testing.T) {
	var (
		structured = whole("a")
		metadata   = &metav1.PartialObjectMetadata{TypeMeta: deployment}
		loose      = &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget"}}
		list       = &appsv1.DeploymentList{}
		body       = &autoscalingv1.Scale{}
		patch      = client.MergeFrom(whole("a"))
		apply      = appsv1ac.Deployment("a", "ns")
	)
	tests := map[string]struct {
		do   func(ctx context.Context, c client.WithWatch) error
		want []any
	}{
		"Get": {
			func(ctx context.Context, c client.WithWatch) error { return c.Get(ctx, client.ObjectKey{}, structured) },
			[]any{structured},
		},
		"GetMetadata": {
			func(ctx context.Context, c client.WithWatch) error { return c.Get(ctx, client.ObjectKey{}, metadata) },
			[]any{metadata},
		},
		"GetUnstructured": {
			func(ctx context.Context, c client.WithWatch) error { return c.Get(ctx, client.ObjectKey{}, loose) },
			[]any{loose},
		},
		"List": {func(ctx context.Context, c client.WithWatch) error { return c.List(ctx, list) }, []any{list}},
		"Create": {
			func(ctx context.Context, c client.WithWatch) error { return c.Create(ctx, structured) },
			[]any{structured},
		},
		"Update": {
			func(ctx context.Context, c client.WithWatch) error { return c.Update(ctx, structured) },
			[]any{structured},
		},
		"Delete": {
			func(ctx context.Context, c client.WithWatch) error { return c.Delete(ctx, structured) },
			[]any{structured},
		},
		"DeleteAllOf": {
			func(ctx context.Context, c client.WithWatch) error { return c.DeleteAllOf(ctx, structured) },
			[]any{structured},
		},
		"Patch": {
			func(ctx context.Context, c client.WithWatch) error { return c.Patch(ctx, structured, patch) },
			[]any{structured, patch},
		},
		"Apply": {func(ctx context.Context, c client.WithWatch) error { return c.Apply(ctx, apply) }, []any{apply}},
		"Watch": {
			func(ctx context.Context, c client.WithWatch) error { _, err := c.Watch(ctx, list); return err },
			[]any{list},
		},
		"Status().Create": {
			func(ctx context.Context, c client.WithWatch) error { return c.Status().Create(ctx, structured, body) },
			[]any{"status", structured, body},
		},
		"Status().Update": {
			func(ctx context.Context, c client.WithWatch) error { return c.Status().Update(ctx, structured) },
			[]any{"status", structured},
		},
		"Status().Patch": {
			func(ctx context.Context, c client.WithWatch) error { return c.Status().Patch(ctx, structured, patch) },
			[]any{"status", structured, patch},
		},
		"Status().Apply": {
			func(ctx context.Context, c client.WithWatch) error { return c.Status().Apply(ctx, apply) },
			[]any{"status", apply},
		},
		"SubResource().Get": {func(ctx context.Context, c client.WithWatch) error {
			return c.SubResource("scale").Get(ctx, structured, body)
		}, []any{"scale", structured, body}},
		"SubResource().Create": {func(ctx context.Context, c client.WithWatch) error {
			return c.SubResource("scale").Create(ctx, structured, body)
		}, []any{"scale", structured, body}},
		"SubResource().Update": {func(ctx context.Context, c client.WithWatch) error {
			return c.SubResource("scale").Update(ctx, structured)
		}, []any{"scale", structured}},
		"SubResource().Patch": {func(ctx context.Context, c client.WithWatch) error {
			return c.SubResource("scale").Patch(ctx, structured, patch)
		}, []any{"scale", structured, patch}},
		"SubResource().Apply": {func(ctx context.Context, c client.WithWatch) error {
			return c.SubResource("scale").Apply(ctx, apply)
		}, []any{"scale", apply}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := &recorder{}
			c := duck.NewDuckAwareClientWrapper(r.client()).(client.WithWatch)
			if err := tt.do(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(tt.want, r.objects) {
				t.Errorf("the wrapped client received %v, want the same instance as %v", r.objects, tt.want)
			}
		})
	}
}

// The wrapped client receives a duck as an unstructured object.
func TestDucksReachTheWrappedClientUnstructured(t *testing.T) {
	patch := client.MergeFrom(scalable("a"))
	tests := map[string]struct {
		do   func(ctx context.Context, c client.WithWatch) error
		want []any
	}{
		"Get": {func(ctx context.Context, c client.WithWatch) error {
			return c.Get(ctx, client.ObjectKey{}, scalable("a"))
		}, []any{"*unstructured.Unstructured"}},
		"List": {func(ctx context.Context, c client.WithWatch) error {
			return c.List(ctx, &ScalableList{TypeMeta: deploymentList})
		}, []any{"*unstructured.UnstructuredList"}},
		"Create": {
			func(ctx context.Context, c client.WithWatch) error { return c.Create(ctx, scalable("a")) },
			[]any{"*unstructured.Unstructured"},
		},
		"Update": {
			func(ctx context.Context, c client.WithWatch) error { return c.Update(ctx, scalable("a")) },
			[]any{"*unstructured.Unstructured"},
		},
		"Delete": {
			func(ctx context.Context, c client.WithWatch) error { return c.Delete(ctx, scalable("a")) },
			[]any{"*unstructured.Unstructured"},
		},
		"DeleteAllOf": {
			func(ctx context.Context, c client.WithWatch) error { return c.DeleteAllOf(ctx, scalable("a")) },
			[]any{"*unstructured.Unstructured"},
		},
		"Patch": {
			func(ctx context.Context, c client.WithWatch) error { return c.Patch(ctx, scalable("a"), patch) },
			[]any{"*unstructured.Unstructured"},
		},
		"Watch": {func(ctx context.Context, c client.WithWatch) error {
			_, err := c.Watch(ctx, &ScalableList{TypeMeta: deploymentList})
			return err
		}, []any{"*unstructured.UnstructuredList"}},
		"Status().Patch": {func(ctx context.Context, c client.WithWatch) error {
			return c.Status().Patch(ctx, scalable("a"), patch)
		}, []any{"*unstructured.Unstructured"}},
		"SubResource().Get": {func(ctx context.Context, c client.WithWatch) error {
			return c.SubResource("scale").Get(ctx, scalable("a"), &autoscalingv1.Scale{})
		}, []any{"*unstructured.Unstructured", "*unstructured.Unstructured"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := &recorder{}
			c := duck.NewDangerousDuckAwareClientWrapper(r.client()).(client.WithWatch)
			if err := tt.do(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			var got []any
			for _, object := range r.objects {
				if _, ok := object.(runtime.Object); ok {
					got = append(got, fmt.Sprintf("%T", object))
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("received by the wrapped client (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSubResourceGet(t *testing.T) {
	// controller-runtime's fake client requires a typed Scale. The real client requires an unstructured one for an
	// unstructured object, so answer as the real client does.
	plain := interceptor.NewClient(cluster(), interceptor.Funcs{
		SubResourceGet: func(
			_ context.Context, _ client.Client, _ string, _, subResource client.Object, _ ...client.SubResourceGetOption,
		) error {
			return unstructured.SetNestedField(subResource.(*unstructured.Unstructured).Object, int64(4), "spec", "replicas")
		},
	})
	got := &autoscalingv1.Scale{}
	if err := duck.NewDuckAwareClientWrapper(plain).SubResource("scale").Get(t.Context(), scalable("a"), got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(int32(4), got.Spec.Replicas); diff != "" {
		t.Errorf("replicas (-want +got):\n%s", diff)
	}
}

// With a body, the patch applies to the body.
func TestSubResourcePatchWithBody(t *testing.T) {
	r := &recorder{}
	c := duck.NewDuckAwareClientWrapper(r.client())
	before := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 1}}
	after := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 2}}
	err := c.SubResource("scale").Patch(
		t.Context(), scalable("a"), client.MergeFrom(before), client.WithSubResourceBody(after),
	)
	if err != nil {
		t.Fatal(err)
	}
	data, err := r.objects[2].(client.Patch).Data(nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`{"spec":{"replicas":2}}`, string(data)); diff != "" {
		t.Errorf("patch (-want +got):\n%s", diff)
	}
}

func TestSchemeAndRESTMapper(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(appsv1.SchemeGroupVersion.WithKind("Deployment"), meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, meta.RESTScopeRoot)
	plain := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithRESTMapper(mapper).Build()
	c := duck.NewDuckAwareClientWrapper(plain)

	if c.Scheme() != plain.Scheme() {
		t.Error("Scheme differs from that of the wrapped client")
	}
	if c.RESTMapper() != plain.RESTMapper() {
		t.Error("RESTMapper differs from that of the wrapped client")
	}

	tests := map[string]struct {
		obj  runtime.Object
		want bool
	}{
		"Namespaced duck":     {&Scalable{TypeMeta: deployment}, true},
		"Cluster-scoped duck": {&Scalable{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}}, false},
		"Registered":          {&appsv1.Deployment{}, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := c.IsObjectNamespaced(tt.obj)
			if err != nil {
				t.Fatal(err)
			}
			if got != tt.want {
				t.Errorf("namespaced is %t, want %t", got, tt.want)
			}
		})
	}
	if _, err := c.IsObjectNamespaced(
		&Scalable{TypeMeta: metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Unknown"}},
	); !meta.IsNoMatchError(
		err,
	) {
		t.Errorf("unknown kind: error %v, want no match", err)
	}
}

func TestReturnsErrorsOfTheWrappedClient(t *testing.T) {
	broken := errors.New("broken")
	plain := interceptor.NewClient(cluster(), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return broken },
		Watch: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
			return nil, broken
		},
	})
	c := duck.NewDuckAwareClientWrapper(plain).(client.WithWatch)
	list := &ScalableList{TypeMeta: deploymentList}
	if err := c.List(t.Context(), list); !errors.Is(err, broken) {
		t.Errorf("List: error %v, want %v", err, broken)
	}
	if _, err := c.Watch(t.Context(), list); !errors.Is(err, broken) {
		t.Errorf("Watch: error %v, want %v", err, broken)
	}
}
