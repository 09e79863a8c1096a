// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestChangesOfConditionsHaveMessages(t *testing.T) {
	pod := func(status corev1.ConditionStatus, message string) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: status, Message: message},
		}}}
	}
	const path = "status.conditions[Ready]: "
	for name, tc := range map[string]struct {
		before, after *corev1.Pod
		mask          Mask
		want          Change
	}{
		"added":   {&corev1.Pod{}, pod("False", "no disk"), Mask{}, Change{path + "added, status False", "", `"no disk"`}},
		"changed": {pod("False", "no disk"), pod("False", "no CPU"), Mask{}, Change{path + "message", `"no disk"`, `"no CPU"`}},
		"equal":   {pod("False", "-"), pod("True", "-"), Mask{}, Change{path + "status False→True", "", ""}},
		"masked": {
			pod("False", "no disk"), pod("True", ""),
			Mask{Paths: []string{"status.conditions[Ready].message"}},
			Change{path + "status False→True, message", "•••", ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := changes(schema.GroupKind{Kind: "Pod"}, tc.before, tc.after, tc.mask)
			if diff := cmp.Diff([]Change{tc.want}, got); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPathsInJSONAreOfFields tests that a program that reads the JSON need not take the path of a condition apart.
func TestPathsInJSONAreOfFields(t *testing.T) {
	for want, change := range map[string]Change{
		`{"path":"data[a: b].c","before":"1","after":"2"}`: {"data[a: b].c", "1", "2"},
		`{"path":"status.conditions[Ready]","condition":"added, status False","after":"\"no disk\""}`: {
			"status.conditions[Ready]: added, status False", "", `"no disk"`,
		},
	} {
		got, err := json.Marshal(change)
		if err != nil || string(got) != want {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
		var again Change
		if err := json.Unmarshal(got, &again); err != nil || again != change {
			t.Errorf("decoded %v, %v, want %v", again, err, change)
		}
	}
}
