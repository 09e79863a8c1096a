// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/memapi/apply"
	"trueup.dev/internal/memapi/kinds"
)

// TestRunsDoNotChangeTheInput compares the input of a plan after a search with the input of a new plan of the same
// scenario. What runs have taught is elsewhere.
func TestRunsDoNotChangeTheInput(t *testing.T) {
	s := controllerScenario(false)
	s.Roles = []client.Object{&rbacv1.ClusterRole{Rules: []rbacv1.PolicyRule{rule("*", "*")}}}
	s.Disturbances = Steps(Delete(newSecret("other")))
	s.World = []Actor{Deployments(BecomeReady)}
	p := mustPlan(t, s)
	if report := p.check(t, Options{Seed: 1, Pairs: 5}); report.Failure != nil {
		t.Fatal(report.Failure)
	}
	if p.reference == nil || len(p.read) == 0 || len(p.access) == 0 || len(p.disturbed) == 0 {
		t.Errorf("the runs have taught nothing: %+v", p.knowledge)
	}
	// Functions can only be compared with nil.
	functions := cmp.FilterValues(func(a, b any) bool {
		return reflect.ValueOf(a).Kind() == reflect.Func && reflect.ValueOf(b).Kind() == reflect.Func
	}, cmp.Comparer(func(a, b any) bool { return reflect.ValueOf(a).IsNil() == reflect.ValueOf(b).IsNil() }))
	options := cmp.Options{
		functions, cmp.Exporter(func(reflect.Type) bool { return true }),
		cmp.FilterPath(func(path cmp.Path) bool {
			switch path.Last().Type() {
			case reflect.TypeFor[*kinds.Registry](), reflect.TypeFor[*apply.Applier](), reflect.TypeFor[Scenario]():
				return true
			}
			return false
		}, cmp.Ignore()),
	}
	if diff := cmp.Diff(mustPlan(t, s).input, p.input, options); diff != "" {
		t.Errorf("input (-before +after):\n%s", diff)
	}
}
