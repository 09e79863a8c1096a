// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

type genericResource[Spec any] struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec Spec `json:"spec"`
}

func (r *genericResource[Spec]) DeepCopyObject() runtime.Object {
	copied := *r
	r.DeepCopyInto(&copied.ObjectMeta)
	return &copied
}

// The name of a generic Go type is not the kind. The scheme has the kind.
func TestResourceReconciler_NameOfGenericType(t *testing.T) {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(
		schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Text"}, &genericResource[string]{},
	)
	for name, tc := range map[string]struct {
		config Config
		want   string
	}{
		"known": {
			config: Config{Client: fake.NewClientBuilder().WithScheme(scheme).Build()}, want: "TextResourceReconciler",
		},
		"unknown": {
			config: Config{Client: fake.NewClientBuilder().WithScheme(runtime.NewScheme()).Build()},
			want:   "genericResourceResourceReconciler",
		},
		"no client": {want: "genericResourceResourceReconciler"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &ResourceReconciler[*genericResource[string]]{Config: tc.config}
			if r.init(); r.Name != tc.want {
				t.Errorf("name = %q, want %q", r.Name, tc.want)
			}
		})
	}
}

// Each reconcile allocates a request, with a header of 8 bytes in a block of 576.
func TestSizeOfARequest(t *testing.T) {
	if size := reflect.TypeFor[request]().Size(); size > 576-8 {
		t.Errorf("a request has %d bytes, want at most 568: put what few requests need behind a pointer", size)
	}
}
