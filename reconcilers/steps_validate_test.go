// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"trueup.dev/apis"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/readiness"
	"trueup.dev/reconcilers"
)

// invalidRule is a rule with a mistake.
type invalidRule struct{ readiness.Rule }

func (invalidRule) Validate(context.Context) error { return errTest }

func TestSteps_Validate(t *testing.T) {
	named := func(name string, dependsOn ...string) stepOf {
		return stepOf{Name: name, DependsOn: dependsOn, Reconciler: nothing()}
	}
	conditions := func(context.Context, *corev1.ConfigMap) apis.ConditionManager { return nil }
	ofConfigMaps := []reconcilers.Step[*corev1.ConfigMap]{
		{Name: "a", Reconciler: reconcilers.Sequence[*corev1.ConfigMap]{}},
	}
	ofConfigMapsWithCondition := []reconcilers.Step[*corev1.ConfigMap]{
		{Name: "a", Condition: "AReady", Reconciler: reconcilers.Sequence[*corev1.ConfigMap]{}},
	}
	ofConfigMapsWithDeadline := []reconcilers.Step[*corev1.ConfigMap]{
		{Name: "a", ProgressDeadline: time.Minute, Reconciler: reconcilers.Sequence[*corev1.ConfigMap]{}},
	}
	const noConditions = `Steps "Steps" may not define Condition without Conditions: ` +
		`ConfigMap has no field Conditions of type []metav1.Condition in its status`
	for name, tc := range map[string]validated{
		"Steps":        {reconciler: &steps{Steps: []stepOf{named("a", "b", "c"), named("b", "c"), named("c")}}},
		"Steps, empty": {&steps{}, []string{`Steps "Steps" must define Steps`}, nil},
		"Steps, wrong": {
			&steps{Name: "n", Steps: []stepOf{
				{},
				named("a", "missing"), named("a", "b", "b"), named("b"),
				{Name: "c", Reconciler: nothing(), ProgressDeadline: -time.Second, Condition: "Ready"},
			}}, []string{
				`Steps "n" must define the Name of Steps[0]`,
				`Steps "n" must implement the Reconciler of Steps[0]`,
				`Steps "n" must define all steps: step "a" depends on "missing", which is not defined`,
				`Steps "n" must define unique names: several steps have the name "a"`,
				`Steps "n" must define each dependency once: step "a" depends on "b" several times`,
				`Steps "n" must not define a negative ProgressDeadline of step "c", got -1s`,
				`Steps "n" must define unique conditions, got "Ready" several times`,
			}, nil,
		},
		"Steps, cycle": {
			&steps{Steps: []stepOf{named("x", "a"), named("a", "c"), named("b", "a"), named("c", "y", "b"), named("y")}},
			[]string{`Steps "Steps" must not define DependsOn in a cycle: a → c → b → a`},
			nil,
		},
		"Steps, depends on itself": {
			&steps{Steps: []stepOf{named("a", "a")}},
			[]string{`Steps "Steps" must not define DependsOn in a cycle: a → a`},
			nil,
		},
		"Steps, invalid below": {
			&steps{Steps: []stepOf{
				{Name: "a", Reconciler: &syncReconciler{Name: "x"}},
				{Name: "b", Reconciler: nothing(), Ready: readiness.Observed(invalidRule{readiness.Exists})},
			}}, nil, []string{
				`Steps "Steps" must have a valid Reconciler of step "a": SyncReconciler "x" must implement Sync or SyncWithResult`,
				`Steps "Steps" must have a valid Ready of step "b": ` + errTest.Error(),
			},
		},
		"Steps, without conditions": {reconciler: &reconcilers.Steps[*corev1.ConfigMap]{Steps: ofConfigMaps}},
		"Steps, condition without conditions": {
			&reconcilers.Steps[*corev1.ConfigMap]{Condition: "Done", Steps: ofConfigMaps}, []string{noConditions}, nil,
		},
		"Steps, condition of a step without conditions": {
			&reconcilers.Steps[*corev1.ConfigMap]{Steps: ofConfigMapsWithCondition}, []string{noConditions}, nil,
		},
		"Steps, deadline without conditions": {
			&reconcilers.Steps[*corev1.ConfigMap]{Steps: ofConfigMapsWithDeadline}, []string{
				`Steps "Steps" must define Condition and Conditions to use the ProgressDeadline of step "a": ` +
					`the condition has the time of the last progress`,
			}, nil,
		},
		"Steps, condition with a manager": {
			reconciler: &reconcilers.Steps[*corev1.ConfigMap]{
				Condition: "Done", Conditions: conditions, Steps: ofConfigMapsWithCondition,
			},
		},
	} {
		t.Run(name, tc.check)
	}
}

// The happy condition follows the condition of the steps.
func TestSteps_ConditionManager(t *testing.T) {
	set := apis.NewLivingConditionSet("StepsDone", "Other")
	manager := func(ctx context.Context, r *fixture.Resource) apis.ConditionManager {
		return set.ManageWithContext(ctx, &r.Status)
	}
	s := newStage(t, sequence{
		&steps{Condition: "StepsDone", Conditions: manager, Steps: []stepOf{newStep("db")}},
		&syncReconciler{Sync: func(ctx context.Context, r *fixture.Resource) error {
			manager(ctx, r).MarkTrue("Other", "Fine", "")
			return nil
		}},
	})
	s.reconcile("first", "create ConfigMap db", statusWritten)
	r := stored(s.world, newResource())
	equal(t, "message", r.Status.GetCondition("StepsDone").Message, r.Status.GetCondition("Ready").Message)
	s.reconcile("waiting")
	s.rollOut("db", "failed")
	s.reconcile("db fails", statusWritten)
	contains(t, string(stored(s.world, newResource()).Status.GetCondition("Ready").Status), "False")
	s.rollOut("db", "")
	s.reconcile("db is ready", statusWritten)
	s.condition("Ready", "True Ready: ")
	s.condition("StepsDone", "True Ready: ")
}

// derivedResource has a Ready condition that is derived from others.
type derivedResource struct {
	fixture.Resource
	Status derivedStatus
}

type derivedStatus struct{ apis.Status }

var derivedConditions = apis.NewLivingConditionSet("StepsReady", "OtherReady")

func (s *derivedStatus) InitializeConditions(ctx context.Context) {
	derivedConditions.ManageWithContext(ctx, s).InitializeConditions()
}

// Is a Ready condition refused that other conditions replace? Each reconcile would write the status.
func TestSteps_Validate_DerivedConditions(t *testing.T) {
	type ofDerived = reconcilers.Steps[*derivedResource]
	manager := func(ctx context.Context, r *derivedResource) apis.ConditionManager {
		return derivedConditions.ManageWithContext(ctx, &r.Status)
	}
	step := func(condition string) []reconcilers.Step[*derivedResource] {
		return []reconcilers.Step[*derivedResource]{
			{Name: "a", Condition: condition, Reconciler: reconcilers.Sequence[*derivedResource]{}},
		}
	}
	const choose = `Steps "Steps" must define Conditions, and as Condition one of OtherReady, StepsReady: Ready is derived from them`
	const define = `Steps "Steps" must define Conditions: Ready is derived from OtherReady, StepsReady`
	for name, tc := range map[string]struct {
		steps *ofDerived
		want  string
	}{
		"default condition":              {&ofDerived{Steps: step("")}, choose},
		"default condition, with a set":  {&ofDerived{Conditions: manager, Steps: step("")}, choose},
		"dependent, without Conditions":  {&ofDerived{Condition: "StepsReady", Steps: step("")}, define},
		"dependent":                      {&ofDerived{Condition: "StepsReady", Conditions: manager, Steps: step("")}, ""},
		"dependent of a step":            {&ofDerived{Condition: "Else", Steps: step("OtherReady")}, define},
		"condition beside the dependent": {&ofDerived{Condition: "Else", Steps: step("")}, ""},
	} {
		t.Run(name, func(t *testing.T) { wantText(t, tc.want, tc.steps.Validate(context.Background())) })
	}
}

// Are two reconcilers refused that set one condition? Each would replace what the other says.
func TestSetup_RejectsASharedCondition(t *testing.T) {
	w := newWorld(t)
	of := func(name, condition string, inner subReconciler) *steps {
		only := stepOf{Name: "a", Condition: name + "A", Reconciler: inner}
		return &steps{Name: name, Condition: condition, Steps: []stepOf{only}}
	}
	const also = ` too, and each replaces what the other says`
	for name, tc := range map[string]struct {
		tree subReconciler
		want string
	}{
		"two by default": {
			sequence{of("a", "", nothing()), of("b", "", nothing())},
			`Steps "b" must define a Condition of its own: another reconciler, Steps "a", sets "Ready"` + also,
		},
		"nested": {
			of("a", "", of("b", "", nothing())),
			`must define a Condition of its own: another reconciler, Steps "`,
		},
		"of a step": {
			sequence{of("a", "", nothing()), of("b", "aA", nothing())},
			`Steps "b" must define a Condition of its own: another reconciler, Steps "a", sets "aA"` + also,
		},
		"Paused": {
			sequence{of("a", "Stopped", nothing()), &paused{Condition: "Stopped", Reconciler: nothing()}},
			`Paused "Paused" must define a Condition of its own: another reconciler, Steps "a", sets "Stopped"` + also,
		},
		"different":     {sequence{of("a", "", nothing()), of("b", "B", nothing())}, ""},
		"one at a time": {&ifThen{If: isTrue, Then: of("a", "", nothing()), Else: of("b", "", nothing())}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			mgr := newManager(t, w, newEventCache(w.Scheme))
			err := (&resourceReconciler{Config: configFor(w, mgr), Reconciler: tc.tree}).SetupWithManager(t.Context(), mgr)
			if tc.want == "" {
				wantErr(t, nil, err)
				return
			}
			if err == nil {
				t.Fatal("setup returned no error")
			}
			contains(t, err.Error(), tc.want)
		})
	}
}
