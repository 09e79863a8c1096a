// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"trueup.dev/apis"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// Is a resource ready whose second step has failed for its new generation? The resource has generation 7. Its
// conditions are about generation 3, and True, unless a case says otherwise.
func TestResourceReconciler_SummaryIsAboutItsOldestDependent(t *testing.T) {
	set := apis.NewLivingConditionSet("Built", "Deployed")
	mark := func(kind string) func(context.Context, *fixture.Resource) {
		return func(ctx context.Context, r *fixture.Resource) {
			set.ManageWithContext(ctx, &r.Status).MarkTrue(kind, "Done", "")
		}
	}
	fail := func(kind string) func(context.Context, *fixture.Resource) {
		return func(ctx context.Context, r *fixture.Resource) {
			set.ManageWithContext(ctx, &r.Status).MarkFalse(kind, "Broken", "")
		}
	}
	initialize := func(ctx context.Context, r *fixture.Resource) {
		set.ManageWithContext(ctx, &r.Status).InitializeConditions()
	}
	type steps = []func(context.Context, *fixture.Resource)

	// Conditions are written as "Built=True@7".
	for name, tc := range map[string]struct {
		given []string
		steps steps
		err   error
		want  []string
	}{
		"the second step fails": {
			steps: steps{mark("Built")}, err: errTest,
			want: []string{"Built=True@7", "Deployed=True@3", "Ready=True@3"},
		},
		"the second step halts": {
			steps: steps{mark("Built")}, err: reconcilers.ErrHaltSubReconcilers,
			want: []string{"Built=True@7", "Deployed=True@3", "Ready=True@3"},
		},
		"both steps succeed": {
			steps: steps{mark("Built"), mark("Deployed")},
			want:  []string{"Built=True@7", "Deployed=True@7", "Ready=True@7"},
		},
		"both steps succeed, and a third one fails": {
			steps: steps{mark("Built"), mark("Deployed")}, err: errTest,
			want: []string{"Built=True@7", "Deployed=True@7", "Ready=True@7"},
		},
		"the second step has nothing to do": {
			steps: steps{mark("Built")},
			want:  []string{"Built=True@7", "Deployed=True@7", "Ready=True@7"},
		},
		"not ready before": {
			given: []string{"Built=False@3", "Deployed=True@3", "Ready=False@3"},
			steps: steps{mark("Built")}, err: errTest,
			want: []string{"Built=True@7", "Deployed=True@3", "Ready=True@3"},
		},
		"a failure is about the new generation": {
			steps: steps{fail("Built")}, err: errTest,
			want: []string{"Built=False@7", "Deployed=True@3", "Ready=False@7"},
		},
		"conditions of an earlier version, without generations": {
			given: []string{"Built=True@0", "Deployed=True@0", "Ready=True@0"},
			steps: steps{mark("Built")}, err: errTest,
			want: []string{"Built=True@7", "Deployed=True@0", "Ready=True@1"},
		},
		"a new dependent": {
			given: []string{"Built=True@3", "Ready=True@3"},
			steps: steps{initialize, mark("Built")}, err: errTest,
			want: []string{"Built=True@7", "Deployed=True@3", "Ready=True@3"},
		},
	} {
		if tc.given == nil {
			tc.given = []string{"Built=True@3", "Deployed=True@3", "Ready=True@3"}
		}
		for style, call := range map[string]func(run *syncReconciler) reconcilers.SubReconciler[*fixture.Resource]{
			"step": func(run *syncReconciler) reconcilers.SubReconciler[*fixture.Resource] { return run },
			"cast": func(run *syncReconciler) reconcilers.SubReconciler[*fixture.Resource] {
				return &reconcilers.CastResource[*fixture.Resource, *fixture.Resource]{Reconciler: run}
			},
		} {
			t.Run(name+", "+style, func(t *testing.T) {
				w := newWorld(t, newResource(func(r *fixture.Resource) {
					r.Generation, r.Status.ObservedGeneration, r.Status.Conditions = 7, 3, parseConditions(t, tc.given)
				}))
				root := &resourceReconciler{Config: w.Config, Reconciler: call(&syncReconciler{
					Sync: func(ctx context.Context, r *fixture.Resource) error {
						for _, step := range tc.steps {
							step(ctx, r)
						}
						return tc.err
					},
				})}
				_, err := root.ReconcileManaged(t.Context(), testRequest)
				if fails := errors.Is(tc.err, errTest); fails != errors.Is(err, errTest) || !fails && err != nil {
					t.Errorf("unexpected error %v", err)
				}
				got := formatConditions(stored(w, newResource()))
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("unexpected conditions (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// Is a resource ready whose second step was not reached, although no error was returned?
func TestResourceReconciler_SummaryWaitsForStepsThatDidNotRun(t *testing.T) {
	set := apis.NewLivingConditionSet("Built", "Deployed", "Order")
	manage := func(ctx context.Context, r *fixture.Resource) apis.ConditionManager {
		return set.ManageWithContext(ctx, &r.Status)
	}
	step := func(kind string, err error) *syncReconciler {
		return &syncReconciler{Sync: func(ctx context.Context, r *fixture.Resource) error {
			manage(ctx, r).MarkTrue(kind, "Done", "")
			return err
		}}
	}
	for name, tc := range map[string]struct {
		first error
		want  []string
	}{
		"the first step halts": {
			reconcilers.ErrHaltSubReconcilers, []string{"Built=True@7", "Deployed=True@3", "Order=Unknown@7", "Ready=Unknown@7"},
		},
		"all steps run": {nil, []string{"Built=True@7", "Deployed=True@7", "Order=True@7", "Ready=True@7"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newResource(func(r *fixture.Resource) {
				r.Generation, r.Status.ObservedGeneration = 7, 3
				r.Status.Conditions = parseConditions(t, []string{
					"Built=True@3", "Deployed=True@3", "Order=True@3", "Ready=True@3",
				})
			}))
			root := &resourceReconciler{Config: w.Config, Reconciler: sequence{
				&syncReconciler{Sync: func(ctx context.Context, r *fixture.Resource) error {
					manage(ctx, r).InitializeConditions()
					return nil
				}},
				&reconcilers.Steps[*fixture.Resource]{
					Finalizer: "test/steps", Condition: "Order", Conditions: manage, Steps: []reconcilers.Step[*fixture.Resource]{
						{Name: "build", Reconciler: step("Built", tc.first)},
						{Name: "deploy", Reconciler: step("Deployed", nil), DependsOn: []string{"build"}},
					},
				},
			}}
			if _, err := root.ReconcileManaged(t.Context(), testRequest); err != nil {
				t.Fatal(err)
			}
			got := formatConditions(stored(w, newResource()))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("unexpected conditions (-want +got):\n%s", diff)
			}
		})
	}
}

// formatConditions writes conditions as "Built=True@7".
func formatConditions(r *fixture.Resource) []string {
	texts := []string{}
	for _, c := range r.Status.Conditions {
		texts = append(texts, fmt.Sprintf("%s=%s@%d", c.Type, c.Status, c.ObservedGeneration))
	}
	return texts
}

// parseConditions parses conditions such as "Built=True@7".
func parseConditions(t *testing.T, texts []string) []metav1.Condition {
	t.Helper()
	list := []metav1.Condition{}
	for _, text := range texts {
		kind, rest, _ := strings.Cut(text, "=")
		status, number, _ := strings.Cut(rest, "@")
		generation, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			t.Fatalf("condition %q: %v", text, err)
		}
		list = append(list, metav1.Condition{
			Type: kind, Status: metav1.ConditionStatus(status), Reason: "Done", ObservedGeneration: generation,
			LastTransitionTime: longAgo,
		})
	}
	return list
}
