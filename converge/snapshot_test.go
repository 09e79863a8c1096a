// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestKindsOfTheSameName compares objects of the same name, of two groups with a kind of the same name.
func TestKindsOfTheSameName(t *testing.T) {
	p := mustPlan(t, copierScenario(false))
	state := func(one, other string) *snapshot {
		s := &snapshot{}
		for _, of := range [][2]string{{"", one}, {"serving.example.com", other}} {
			obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"value": of[1]}}}
			obj.SetNamespace("default")
			obj.SetName("a")
			obj.SetUID(types.UID("uid" + of[0]))
			s.kinds = append(s.kinds, schema.GroupVersionKind{Group: of[0], Version: "v1", Kind: "Service"})
			s.objects = append(s.objects, []client.Object{obj})
		}
		return s
	}
	want := []difference{
		{
			name: "Service default/a of serving.example.com", cause: CauseDifferent,
			lines: []string{`Service default/a of serving.example.com: spec.value is "3", want "2"`},
		},
	}
	got := p.differences(state("1", "2"), state("1", "3"), nil)
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(difference{})); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
}
