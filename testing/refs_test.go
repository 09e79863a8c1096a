// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	clientgotesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
)

func TestNewRefs(t *testing.T) {
	resource := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "Planet"}
	configuration := corev1ac.ConfigMap("theme", "web").WithData(map[string]string{"color": "blue"})
	selector, field := labels.SelectorFromSet(labels.Set{"a": "b"}), fields.OneTermEqualSelector("c", "d")
	collection := clientgotesting.DeleteCollectionActionImpl{
		ActionImpl:       clientgotesting.ActionImpl{Verb: "delete-collection", Resource: resource, Namespace: "web"},
		ListRestrictions: clientgotesting.ListRestrictions{Labels: selector, Fields: field},
	}
	tests := map[string]struct{ got, want any }{
		"Patch": {
			got: NewPatchRef(
				clientgotesting.NewPatchSubresourceAction(resource, "web", "mars", types.JSONPatchType, []byte("[]"), "status"),
			),
			want: PatchRef{
				Group: "example.com", Kind: "Planet", Namespace: "web", Name: "mars", SubResource: "status",
				PatchType: types.JSONPatchType, Patch: []byte("[]"),
			},
		},
		"Delete": {
			got:  NewDeleteRef(clientgotesting.NewDeleteAction(resource, "web", "mars")),
			want: DeleteRef{Group: "example.com", Kind: "Planet", Namespace: "web", Name: "mars"},
		},
		"DeleteObject": {
			got:  NewDeleteRefFromObject(die{theResource()}, assertScheme),
			want: DeleteRef{Group: "fixture.trueup.dev", Kind: "Resource", Namespace: "web", Name: "blog"},
		},
		"DeleteDuck": {
			got:  NewDeleteRefFromObject(fixture.NewDuck("web", "blog"), assertScheme),
			want: DeleteRef{Group: "fixture.trueup.dev", Kind: "Resource", Namespace: "web", Name: "blog"},
		},
		"DeleteCollection": {
			got:  NewDeleteCollectionRef(collection),
			want: DeleteCollectionRef{Group: "example.com", Kind: "Planet", Namespace: "web", Labels: selector, Fields: field},
		},
		"Apply": {
			got:  NewApplyRef(NewApplyAction(configuration)),
			want: ApplyRef{Kind: "ConfigMap", Namespace: "web", Name: "theme", ApplyConfiguration: configuration},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.got, NormalizeLabelSelector, NormalizeFieldSelector); diff != "" {
				t.Errorf("ref (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNewSubResourceRef(t *testing.T) {
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 3}}
	pod := &corev1.Pod{ObjectMeta: theMap().ObjectMeta}
	configuration := corev1ac.Pod("theme", "web")
	ref := SubResourceRef{Kind: "Pod", Namespace: "web", Name: "theme", SubResource: "scale"}
	tests := map[string]struct {
		do   func(client.SubResourceClient) error
		want func(*SubResourceRef)
	}{
		"Create": {
			do:   func(c client.SubResourceClient) error { return c.Create(t.Context(), pod, scale) },
			want: func(ref *SubResourceRef) { ref.Verb, ref.Body = "create", scale },
		},
		"Update": {
			do:   func(c client.SubResourceClient) error { return c.Update(t.Context(), pod) },
			want: func(ref *SubResourceRef) { ref.Verb = "update" },
		},
		"UpdateBody": {
			do: func(c client.SubResourceClient) error {
				return c.Update(t.Context(), pod, client.WithSubResourceBody(scale))
			},
			want: func(ref *SubResourceRef) { ref.Verb, ref.Body = "update", scale },
		},
		"Patch": {
			do: func(c client.SubResourceClient) error {
				return c.Patch(t.Context(), pod, client.RawPatch(types.MergePatchType, []byte("{}")))
			},
			want: func(ref *SubResourceRef) {
				ref.Verb, ref.PatchType, ref.Patch = "patch", types.MergePatchType, []byte("{}")
			},
		},
		"Apply": {
			do:   func(c client.SubResourceClient) error { return c.Apply(t.Context(), configuration) },
			want: func(ref *SubResourceRef) { ref.Verb, ref.ApplyConfiguration = "apply", configuration },
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := newAssertConfig("")
			want := ref
			tt.want(&want)
			c.ExpectSubResources = []SubResourceRef{want}
			if err := tt.do(c.Config().SubResource("scale")); err != nil {
				t.Error(err)
			}
			c.AssertExpectations(t)

			got := NewSubResourceRef(c.opened.client.SubResourceActions[0])
			if diff := cmp.Diff(want, got, NormalizeApplyConfiguration); diff != "" {
				t.Errorf("ref (-want +got):\n%s", diff)
			}
		})
	}
}
