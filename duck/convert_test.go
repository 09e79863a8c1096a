// SPDX-License-Identifier: Apache-2.0

package duck_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"trueup.dev/duck"
)

func TestIsDuck(t *testing.T) {
	tests := map[string]struct {
		reason string
		obj    runtime.Object
		want   bool
	}{
		"Duck": {
			reason: "not registered, with its kind set",
			obj:    &Scalable{TypeMeta: deployment},
			want:   true,
		},
		"DuckList": {
			reason: "lists may be ducks as well",
			obj:    &ScalableList{TypeMeta: deploymentList},
			want:   true,
		},
		"UnregisteredWithoutKind": {
			reason: "a duck must have its kind set",
			obj:    &Scalable{},
		},
		"Registered": {
			reason: "the scheme knows the type",
			obj:    &appsv1.Deployment{TypeMeta: deployment},
		},
		"RegisteredWithOtherKind": {
			reason: "the Go type decides, not the kind that is set",
			obj:    &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Widget"}},
		},
		"Unstructured": {
			reason: "clients handle unstructured objects themselves",
			obj:    &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget"}},
		},
		"UnstructuredWithoutVersion": {
			reason: "the client rejects an incomplete unstructured object",
			obj:    &unstructured.Unstructured{Object: map[string]any{"kind": "Widget"}},
		},
		"UnstructuredList": {
			reason: "clients handle unstructured lists themselves",
			obj:    &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "WidgetList"}},
		},
		"MetadataOnly": {
			reason: "a metadata-only read must not read whole objects",
			obj:    &metav1.PartialObjectMetadata{TypeMeta: deployment},
		},
		"MetadataOnlyList": {
			reason: "a metadata-only read must not read whole objects",
			obj:    &metav1.PartialObjectMetadataList{TypeMeta: deploymentList},
		},
		"Nil": {reason: "nil is not a duck"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := duck.IsDuck(tt.obj, clientgoscheme.Scheme); got != tt.want {
				t.Errorf("%s: got %t, want %t", tt.reason, got, tt.want)
			}
		})
	}
}

func TestConvert(t *testing.T) {
	whole := &appsv1.Deployment{
		TypeMeta:   deployment,
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", Labels: map[string]string{"color": "blue"}},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(3)),
			Paused:   true,
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
		},
		Status: appsv1.DeploymentStatus{Replicas: 2},
	}
	part := &Scalable{
		TypeMeta:   deployment,
		ObjectMeta: whole.ObjectMeta,
		Spec:       ScalableSpec{Replicas: new(int32(3)), Strategy: map[string]any{"type": "Recreate"}},
		Status:     ScalableStatus{Replicas: 2},
	}
	content := map[string]any{
		"apiVersion": "apps/v1",
		"kind":       "Deployment",
		"metadata":   map[string]any{"namespace": "ns", "name": "a", "labels": map[string]any{"color": "blue"}},
		"spec":       map[string]any{"replicas": int64(3), "strategy": map[string]any{"type": "Recreate"}},
		"status":     map[string]any{"replicas": int64(2)},
	}

	tests := map[string]struct {
		reason   string
		from, to runtime.Object
		want     runtime.Object
	}{
		"TypedToDuck": {
			reason: "the duck keeps its fields, the others are dropped",
			from:   whole,
			to:     &Scalable{},
			want:   part,
		},
		"DuckToUnstructured": {
			reason: "the unstructured object has the fields of the duck",
			from:   part,
			to:     &unstructured.Unstructured{},
			want:   &unstructured.Unstructured{Object: content},
		},
		"UnstructuredToDuck": {
			reason: "and back",
			from:   &unstructured.Unstructured{Object: content},
			to:     &Scalable{},
			want:   part,
		},
		"UnstructuredToUnstructured": {
			reason: "the same type on both sides copies",
			from:   &unstructured.Unstructured{Object: content},
			to:     &unstructured.Unstructured{},
			want:   &unstructured.Unstructured{Object: content},
		},
		"IntoUsedTarget": {
			reason: "previous content of the target is replaced",
			from:   &Scalable{TypeMeta: deployment, ObjectMeta: metav1.ObjectMeta{Name: "b"}},
			to:     part.DeepCopy(),
			want:   &Scalable{TypeMeta: deployment, ObjectMeta: metav1.ObjectMeta{Name: "b"}},
		},
		"ListToUnstructured": {
			reason: "lists convert with their items",
			from: &ScalableList{
				TypeMeta: deploymentList,
				ListMeta: metav1.ListMeta{ResourceVersion: "7"},
				Items:    []Scalable{*part},
			},
			to: &unstructured.UnstructuredList{},
			want: &unstructured.UnstructuredList{
				Object: map[string]any{
					"apiVersion": "apps/v1", "kind": "DeploymentList",
					"metadata": map[string]any{"resourceVersion": "7"},
					"items":    []any{content},
				},
				Items: []unstructured.Unstructured{{Object: content}},
			},
		},
		"UnstructuredListToList": {
			reason: "and back",
			from: &unstructured.UnstructuredList{
				Object: map[string]any{
					"apiVersion": "apps/v1", "kind": "DeploymentList",
					"metadata": map[string]any{"resourceVersion": "7"},
				},
				Items: []unstructured.Unstructured{{Object: content}},
			},
			to: &ScalableList{Items: []Scalable{{}, {}}},
			want: &ScalableList{
				TypeMeta: deploymentList,
				ListMeta: metav1.ListMeta{ResourceVersion: "7"},
				Items:    []Scalable{*part},
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			before := tt.from.DeepCopyObject()
			if err := duck.Convert(tt.from, tt.to); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, tt.to); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
			if diff := cmp.Diff(before, tt.from); diff != "" {
				t.Errorf("the source changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestConvertSharesNoMemory(t *testing.T) {
	original := func() *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment",
			"spec": map[string]any{"strategy": map[string]any{"rollingUpdate": map[string]any{"maxSurge": int64(1)}}},
		}}
	}
	change := func(strategy map[string]any) { strategy["rollingUpdate"].(map[string]any)["maxSurge"] = int64(9) }

	t.Run("Unstructured", func(t *testing.T) {
		from, to := original(), &unstructured.Unstructured{}
		if err := duck.Convert(from, to); err != nil {
			t.Fatal(err)
		}
		change(to.Object["spec"].(map[string]any)["strategy"].(map[string]any))
		if diff := cmp.Diff(original(), from); diff != "" {
			t.Errorf("changing the target changed the source (-want +got):\n%s", diff)
		}
	})
	t.Run("Duck", func(t *testing.T) {
		from, to := original(), &Scalable{}
		if err := duck.Convert(from, to); err != nil {
			t.Fatal(err)
		}
		change(to.Spec.Strategy)
		if diff := cmp.Diff(original(), from); diff != "" {
			t.Errorf("changing the target changed the source (-want +got):\n%s", diff)
		}
	})
}

// notJSON cannot be encoded as JSON.
type notJSON struct {
	metav1.TypeMeta `json:",inline"`
	Channel         chan int `json:"channel"`
}

func (n *notJSON) DeepCopyObject() runtime.Object { return n }

func TestConvertErrors(t *testing.T) {
	tests := map[string]struct {
		from, to runtime.Object
		want     string
	}{
		"From": {
			from: &notJSON{Channel: make(chan int)},
			to:   &unstructured.Unstructured{},
			want: "unable to convert from object: ",
		},
		"To": {
			from: &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": "many"}}},
			to:   &Scalable{},
			want: "unable to convert to object: ",
		},
		"ToTyped": {
			from: &unstructured.Unstructured{Object: map[string]any{"data": "text"}},
			to:   &corev1.ConfigMap{},
			want: "unable to convert to object: ",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := duck.Convert(tt.from, tt.to)
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Fatalf("error %v, want prefix %q", err, tt.want)
			}
			if errors.Unwrap(err) == nil {
				t.Error("the cause is not wrapped")
			}
		})
	}
}
