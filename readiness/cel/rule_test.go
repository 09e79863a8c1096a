// SPDX-License-Identifier: Apache-2.0

package cel_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/readiness"
	"trueup.dev/readiness/cel"
)

func backup(phase string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Backup", "metadata": map[string]any{"generation": int64(2)},
		"status": map[string]any{"phase": phase, "observedGeneration": int64(2), "done": int64(3), "of": int64(5)},
	}}
}

func outdated(obj *unstructured.Unstructured) *unstructured.Unstructured {
	obj.SetGeneration(3)
	return obj
}

func TestRule(t *testing.T) {
	rule := &cel.Rule{
		Ready: `object.status.phase == "Done"`, Failed: `object.status.phase in ["Failed", "Lost"]`,
		Message: `"%d of %d parts are stored".format([object.status.done, object.status.of])`,
	}
	for name, tc := range map[string]struct {
		rule *cel.Rule
		obj  client.Object
		want readiness.Readiness
	}{
		"ready": {rule, backup("Done"), readiness.Readiness{State: readiness.Ready, Reason: readiness.ReasonReady}},
		"not ready": {rule, backup("Running"), readiness.Readiness{
			State: readiness.Progressing, Reason: readiness.ReasonPending, Message: "3 of 5 parts are stored",
		}},
		"failed": {rule, backup("Lost"), readiness.Readiness{
			State: readiness.Failed, Reason: readiness.ReasonFailed, Message: "3 of 5 parts are stored",
		}},
		"an older generation": {rule, outdated(backup("Done")), readiness.Readiness{
			State: readiness.Progressing, Reason: readiness.ReasonNotObserved, Message: "generation 3 is not observed yet",
		}},
		"without a message": {&cel.Rule{Ready: "false"}, backup(""), readiness.Readiness{
			State: readiness.Progressing, Reason: readiness.ReasonPending, Message: "it is not true that false",
		}},
		"a field that does not exist": {&cel.Rule{Ready: "object.status.other"}, backup(""), readiness.Readiness{
			State: readiness.Unknown, Reason: "ExpressionFailed",
			Message: "unable to evaluate the rule: no such key: other",
		}},
		"an optional field": {
			&cel.Rule{Ready: `object.?status.?other.orValue("none") == "none"`}, backup(""),
			readiness.Readiness{State: readiness.Ready, Reason: readiness.ReasonReady},
		},
		"another type": {&cel.Rule{Ready: "object.status.phase"}, backup("Done"), readiness.Readiness{
			State: readiness.Unknown, Reason: "ExpressionFailed",
			Message: "unable to evaluate the rule: result must be bool, got string",
		}},
		"too expensive": {
			&cel.Rule{Ready: "[1, 2, 3, 4].all(a, [1, 2, 3, 4].all(b, a * b > 0))", CostLimit: 20}, backup(""),
			readiness.Readiness{
				State: readiness.Unknown, Reason: "ExpressionFailed",
				// cel-go spells this word in its own way.
				Message: "unable to evaluate the rule: operation cancel" + "led: actual cost limit exceeded",
			},
		},
		"a typed object": {
			&cel.Rule{Ready: "object.status.succeeded >= object.spec.completions"},
			&batchv1.Job{Spec: batchv1.JobSpec{Completions: new(int32)}, Status: batchv1.JobStatus{Succeeded: 1}},
			readiness.Readiness{State: readiness.Ready, Reason: readiness.ReasonReady},
		},
		"being deleted": {
			rule, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{}}},
			readiness.Readiness{State: readiness.Terminating, Reason: readiness.ReasonTerminating, Message: "is being deleted"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tc.rule.Validate(t.Context()); err != nil {
				t.Fatal(err)
			}
			before := tc.obj.DeepCopyObject()
			for range 2 {
				if diff := cmp.Diff(tc.want, tc.rule.Of(tc.obj)); diff != "" {
					t.Errorf("unexpected readiness (-want +got):\n%s", diff)
				}
			}
			if diff := cmp.Diff(before, runtime.Object(tc.obj)); diff != "" {
				t.Errorf("the object was changed (-before +after):\n%s", diff)
			}
		})
	}
}

// A mistake is found at set-up. Of never takes an object for ready without a valid rule.
func TestRule_Validate(t *testing.T) {
	for name, tc := range map[string]struct {
		rule *cel.Rule
		want []string
	}{
		"nothing": {&cel.Rule{}, []string{"rule must define Ready"}},
		"syntax": {
			&cel.Rule{Ready: "object.", Failed: "1 +", Message: "true"},
			[]string{"unable to compile Ready", "unable to compile Failed", "unable to compile Message: result must be string"},
		},
		"type":             {&cel.Rule{Ready: `"yes"`}, []string{"unable to compile Ready: result must be bool, got string"}},
		"unknown variable": {&cel.Rule{Ready: "self.ready"}, []string{"undeclared reference to 'self'"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.rule.Validate(t.Context())
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error does not contain %q: %v", want, err)
				}
			}
			if got := tc.rule.Of(backup("Done")).State; got != readiness.Unknown {
				t.Errorf("want state Unknown, got %s", got)
			}
		})
	}
}

func BenchmarkRule(b *testing.B) {
	rule, obj := &cel.Rule{Ready: `object.status.phase == "Done"`}, backup("Done")
	b.ReportAllocs()
	for b.Loop() {
		if !rule.Of(obj).IsReady() {
			b.Fatal("not ready")
		}
	}
}
