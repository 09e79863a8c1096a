// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestStatesOfCorrectReconciler(t *testing.T) {
	report := checkStates(t, pageScenario(fillPage))
	if report.Failure != nil {
		t.Fatal(report.Failure)
	}
	t.Log(report.Certificate, report.Certificate.Elapsed)
	if c := report.Certificate; c.Changed != c.Properties || c.Values < 10 || c.Rejected == 0 || c.Pairs == 0 ||
		c.Walks == 0 || c.Faults == 0 {
		t.Errorf("%+v", c)
	}
}

// A reconciler that merges vars never removes one.
func TestStatesFindsWhatIsNotRemoved(t *testing.T) {
	report := checkStates(t, pageScenario(func(config *corev1.ConfigMap, page *Page) error {
		old := config.Data
		if err := fillPage(config, page); err != nil {
			return err
		}
		delete(config.Data, "vars")
		merged := map[string]string{}
		for key, value := range old {
			if strings.HasPrefix(key, "var-") {
				merged[key] = value
			}
		}
		for key, value := range page.Spec.Vars {
			merged["var-"+key] = value
		}
		maps.Copy(config.Data, merged)
		return nil
	}))
	f := report.Failure
	if f == nil {
		t.Fatal("not found")
	}
	t.Log(f, f.Replay)
	if f.Violation.Oracle != OraclePath || len(f.Walk) != 2 {
		t.Errorf("%s", f)
	}
}
