// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	appsv1apply "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	clientgotesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestNewApplyAction(t *testing.T) {
	typed := appsv1apply.Deployment("one", "my-namespace")
	untyped := client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "one"},
	}})
	tests := map[string]struct{ got, want ApplyAction }{
		"typed": {
			NewApplyAction(typed),
			ApplyActionImpl{clientgotesting.ActionImpl{
				Namespace: "my-namespace", Verb: "apply",
				Resource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "Deployment"},
			}, "one", typed},
		},
		"unstructured": {
			NewApplyAction(untyped),
			ApplyActionImpl{
				clientgotesting.ActionImpl{
					Verb: "apply", Resource: schema.GroupVersionResource{Version: "v1", Resource: "Namespace"},
				},
				"one", untyped,
			},
		},
		"subresource": {
			NewApplySubresourceAction(untyped, "status"),
			ApplyActionImpl{clientgotesting.ActionImpl{
				Verb: "apply", Resource: schema.GroupVersionResource{Version: "v1", Resource: "Namespace"}, Subresource: "status",
			}, "one", untyped},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(
				test.want, test.got, cmp.Comparer(func(a, b runtime.ApplyConfiguration) bool { return a == b }),
			); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestApplyActionImpl_DeepCopy(t *testing.T) {
	ac := corev1apply.ConfigMap("one", "my-namespace").WithData(map[string]string{"a": "1"})
	copied := NewApplyAction(ac).DeepCopy().(ApplyAction)
	ac.Data["a"] = "2"
	if got := copied.GetApplyConfiguration().(*corev1apply.ConfigMapApplyConfiguration).Data["a"]; got != "1" ||
		copied.GetName() != "one" {
		t.Errorf("got %s of %s", got, copied.GetName())
	}
}

// writeOnly writes JSON that it does not read.
type writeOnly struct{ name, color string }

func (*writeOnly) IsApplyConfiguration() {}

func (w *writeOnly) MarshalJSON() ([]byte, error) {
	return json.Marshal(corev1apply.ConfigMap(w.name, "my-namespace").WithData(map[string]string{"color": w.color}))
}

func TestApplyActionImpl_DeepCopy_writeOnly(t *testing.T) {
	copied := NewApplyAction(&writeOnly{"one", "blue"}).DeepCopy().(ApplyAction)
	want := NewApplyRef(NewApplyAction(&writeOnly{"one", "blue"}))
	if diff := cmp.Diff(want, NewApplyRef(copied), NormalizeApplyConfiguration); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// unmarshalable has no JSON form.
type unmarshalable struct{}

func (unmarshalable) IsApplyConfiguration() {}

func (unmarshalable) MarshalJSON() ([]byte, error) { return nil, errors.New("on purpose") }

func TestNewApplyAction_unmarshalable(t *testing.T) {
	if err := newTestClient(t).Apply(t.Context(), unmarshalable{}); err == nil {
		t.Error("applied")
	}
	defer func() {
		if err, ok := recover().(error); !ok ||
			fmt.Sprint(err) != "unable to marshal apply configuration: json: error calling MarshalJSON for type "+
				"testing.unmarshalable: on purpose" {
			t.Errorf("panic = %v", err)
		}
	}()
	NewApplyAction(unmarshalable{})
}
