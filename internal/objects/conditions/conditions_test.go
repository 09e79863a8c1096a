// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Does the API server accept what Mend returns, whatever the author wrote?
func TestMend(t *testing.T) {
	long := strings.Repeat("ä", 20_000) // 40,000 bytes
	for name, tc := range map[string]struct{ reason, message, wantReason, wantMessage string }{
		"valid":               {"Ready", "all is well", "Ready", "all is well"},
		"valid, with signs":   {"Not_ready:a,B", "", "Not_ready:a,B", ""},
		"no reason":           {"", "", "Unspecified", ""},
		"spaces":              {"not found", "", "NotFound", ""},
		"signs":               {"HTTP 503 (down)", "", "HTTP503Down", ""},
		"a digit first":       {"503", "", "Unspecified", ""},
		"a sign last":         {"Failed:", "", "Failed", ""},
		"other letters":       {"Größe", "", "GrE", ""},
		"a long reason":       {strings.Repeat("a", 2000), "", "A" + strings.Repeat("a", 1023), ""},
		"a long message":      {"A", strings.Repeat("a", 40_000), "A", strings.Repeat("a", 32_765) + "…"},
		"a cut inside a rune": {"A", "a" + long, "A", "a" + strings.Repeat("ä", 16_382) + "…"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Mend(metav1.Condition{Type: "Ready", Status: "True", Reason: tc.reason, Message: tc.message})
			if diff := cmp.Diff([]string{tc.wantReason, tc.wantMessage}, []string{got.Reason, got.Message}); diff != "" {
				t.Errorf("unexpected reason and message (-want +got):\n%s", diff)
			}
			if errs := Validate([]metav1.Condition{got}, nil, field.NewPath("status")); len(errs) > 0 {
				t.Errorf("the condition is refused: %v", errs)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	bad := metav1.Condition{Type: "Ready", Status: "True", Reason: "not found"}
	if errs := Validate([]metav1.Condition{bad}, nil, field.NewPath("status", "conditions")); len(errs) != 1 ||
		errs[0].Field != "status.conditions[0].reason" {
		t.Errorf("unexpected errors %v", errs)
	}
	if errs := Validate([]metav1.Condition{bad}, []metav1.Condition{bad}, nil); len(errs) != 0 {
		t.Errorf("a stored condition is refused: %v", errs)
	}
}
