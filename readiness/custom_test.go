// SPDX-License-Identifier: Apache-2.0

package readiness_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/apis"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/readiness"
	"trueup.dev/validation"
)

// conditions are condition types and their status, and perhaps a generation.
type conditions []metav1.Condition

func is(kind string, status metav1.ConditionStatus) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: "Test", Message: kind + " is " + string(status)}
}

func at(generation int64, c metav1.Condition) metav1.Condition {
	c.ObservedGeneration = generation
	return c
}

func custom(generation, observed int64, list conditions) *fixture.Resource {
	r := &fixture.Resource{ObjectMeta: metav1.ObjectMeta{Generation: generation}}
	r.Status.Status = apis.Status{ObservedGeneration: observed, Conditions: list}
	return r
}

func TestOf_CustomResources(t *testing.T) {
	for name, tc := range map[string]struct {
		generation, observed int64
		conditions           conditions
		want                 string
	}{
		"no status": {1, 0, nil, "Unknown: the status does not report whether it is ready"},
		"observed":  {1, 1, nil, "Ready"},
		"not observed": {
			2, 1,
			conditions{is("Ready", "True")},
			"Progressing: generation 2 is not observed yet",
		},
		"ready":                      {1, 1, conditions{is("Ready", "True")}, "Ready: Ready is True"},
		"ready without a generation": {1, 0, conditions{is("Ready", "True")}, "Ready: Ready is True"},
		"not ready":                  {1, 1, conditions{is("Ready", "False")}, "Progressing: Ready is False"},
		"condition of an old one": {
			2, 2,
			conditions{at(1, is("Ready", "True"))},
			"Progressing: generation 2 is not observed yet",
		},
		"stalled": {
			1, 1,
			conditions{is("Ready", "False"), is("Stalled", "True")},
			"Failed: Stalled is True",
		},
		"stalled before the change": {
			2, 2,
			conditions{at(1, is("Stalled", "True")), is("Ready", "True")},
			"Ready: Ready is True",
		},
		"reconciling": {
			1, 1,
			conditions{is("Ready", "True"), is("Reconciling", "True")},
			"Progressing: Reconciling is True",
		},
		"kstatus":       {1, 0, conditions{is("Reconciling", "False")}, "Ready"},
		"succeeded":     {1, 1, conditions{is("Succeeded", "True")}, "Ready: Succeeded is True"},
		"not succeeded": {1, 1, conditions{is("Succeeded", "False")}, "Failed: Succeeded is False"},
		"maybe succeeded": {
			1, 1,
			conditions{is("Succeeded", "Unknown")},
			"Progressing: Succeeded is Unknown",
		},
		"available": {1, 1, conditions{is("Available", "True")}, "Ready: Available is True"},
		"not available": {
			1, 1,
			conditions{is("Available", "False")},
			"Progressing: Available is False",
		},
		"failed":            {1, 1, conditions{is("Failed", "True")}, "Failed: Failed is True"},
		"failed, and ready": {1, 1, conditions{is("Failed", "True"), is("Ready", "True")}, "Failed: Failed is True"},
		"not failed":        {1, 1, conditions{is("Failed", "False")}, "Ready"},
		"degraded":          {1, 1, conditions{is("Degraded", "True")}, "Progressing: Degraded is True"},
		"available, degraded": {
			1, 1,
			conditions{is("Available", "True"), is("Degraded", "True")},
			"Progressing: Degraded is True",
		},
		"ready, degraded":          {1, 1, conditions{is("Ready", "True"), is("Degraded", "True")}, "Ready: Ready is True"},
		"not healthy":              {1, 1, conditions{is("Healthy", "False")}, "Progressing: Healthy is False"},
		"healthy":                  {1, 1, conditions{is("Healthy", "True")}, "Ready"},
		"failed before the change": {2, 2, conditions{at(1, is("Failed", "True"))}, "Ready"},
		"restored from a backup": {
			1, 5,
			conditions{at(5, is("Ready", "True"))},
			"Progressing: generation 1 is not observed yet, the status is about generation 5 of a former object",
		},
		"restored, by the condition": {
			1, 1,
			conditions{at(5, is("Ready", "True"))},
			"Progressing: generation 1 is not observed yet, the status is about generation 5 of a former object",
		},
		"unknown condition": {
			1, 0,
			conditions{is("Other", "True")},
			"Unknown: the status does not report whether it is ready",
		},
		"ready decides, not available": {
			1, 1,
			conditions{is("Ready", "False"), is("Available", "True")},
			"Progressing: Ready is False",
		},
		"ready decides, not succeeding": {
			1, 1,
			conditions{is("Ready", "True"), is("Succeeded", "False")},
			"Ready: Ready is True",
		},
	} {
		t.Run(name, func(t *testing.T) {
			obj := custom(tc.generation, tc.observed, tc.conditions)
			if diff := cmp.Diff(tc.want, readiness.Of(obj).String()); diff != "" {
				t.Errorf("unexpected readiness (-want +got):\n%s", diff)
			}
			untyped := &unstructured.Unstructured{Object: map[string]any{
				"metadata": map[string]any{"generation": tc.generation}, "status": statusOf(tc.observed, tc.conditions),
			}}
			untyped.SetGroupVersionKind(fixture.GroupVersion.WithKind("Resource"))
			if diff := cmp.Diff(readiness.Of(obj), readiness.Of(untyped)); diff != "" {
				t.Errorf("an unstructured object differs (-typed +unstructured):\n%s", diff)
			}
		})
	}
}

func statusOf(observed int64, list conditions) map[string]any {
	items := []any{}
	for _, c := range list {
		item := map[string]any{"type": c.Type, "status": string(c.Status), "reason": c.Reason, "message": c.Message}
		if c.ObservedGeneration != 0 {
			item["observedGeneration"] = c.ObservedGeneration
		}
		items = append(items, item)
	}
	status := map[string]any{"conditions": items}
	if observed != 0 {
		status["observedGeneration"] = observed
	}
	return status
}

// A reader without the rest of an object must not take it for ready.
func TestOf_Metadata(t *testing.T) {
	for kind, want := range map[schema.GroupVersionKind]string{
		{Version: "v1", Kind: "ConfigMap"}:                 "Ready",
		{Group: "apps", Version: "v1", Kind: "Deployment"}: "Unknown: only the metadata of the object is known",
		fixture.GroupVersion.WithKind("Resource"):          "Unknown: only the metadata of the object is known",
	} {
		obj := &metav1.PartialObjectMetadata{}
		obj.SetGroupVersionKind(kind)
		if diff := cmp.Diff(want, readiness.Of(obj).String()); diff != "" {
			t.Errorf("unexpected readiness of %s (-want +got):\n%s", kind.Kind, diff)
		}
	}
}

func TestRules(t *testing.T) {
	never := readiness.Func(func(client.Object) readiness.Readiness {
		return readiness.Readiness{State: readiness.Failed, Reason: "Never", Message: "never"}
	})
	terminating := custom(1, 1, nil)
	terminating.DeletionTimestamp = &metav1.Time{}
	for name, tc := range map[string]struct {
		rule readiness.Rule
		obj  client.Object
		want string
	}{
		"exists":           {readiness.Exists, custom(2, 1, nil), "Ready"},
		"exists no longer": {readiness.Exists, terminating, "Terminating: is being deleted"},
		"default": {
			readiness.Default, custom(2, 1, nil),
			"Progressing: generation 2 is not observed yet",
		},
		"function": {never, custom(2, 1, nil), "Failed: never"},
		"observed, an old one": {
			readiness.Observed(never), custom(2, 1, nil),
			"Progressing: generation 2 is not observed yet",
		},
		"observed, the current one":  {readiness.Observed(never), custom(2, 2, nil), "Failed: never"},
		"observed, without a number": {readiness.Observed(never), custom(2, 0, nil), "Failed: never"},
		"observed, being deleted":    {readiness.Observed(never), terminating, "Terminating: is being deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.rule.Of(tc.obj).String()); diff != "" {
				t.Errorf("unexpected readiness (-want +got):\n%s", diff)
			}
		})
	}
}

// invalidRule is a rule whose Validate method returns an error.
type invalidRule struct{ readiness.Rule }

var errInvalid = errors.New("invalid")

func (invalidRule) Validate(context.Context) error { return errInvalid }

func TestObserved_ValidatesItsRule(t *testing.T) {
	for name, tc := range map[string]struct {
		rule readiness.Rule
		want error
	}{
		"invalid":                   {invalidRule{readiness.Default}, errInvalid},
		"without a Validate method": {readiness.Default, nil},
	} {
		t.Run(name, func(t *testing.T) {
			rule, ok := readiness.Observed(tc.rule).(validation.Validator)
			if !ok {
				t.Fatal("the rule does not implement Validator")
			}
			if err := rule.Validate(t.Context()); !errors.Is(err, tc.want) {
				t.Errorf("want error %v, got %v", tc.want, err)
			}
		})
	}
}
