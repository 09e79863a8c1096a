// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestNewPlan_reportsAllProblems(t *testing.T) {
	_, err := newPlan(Scenario{
		Scheme: scheme.Scheme,
		New:    func(Env) reconcile.Reconciler { return nil }, Setup: func(ctrl.Manager) error { return nil },
		Owns:    []client.Object{nil},
		Watches: []Watch{{Object: &corev1.ConfigMap{}}},
		Filters: []Filter{{}},
		CRDs:    []client.Object{(*corev1.ConfigMap)(nil)},
		Given:   []client.Object{(*corev1.Secret)(nil)},
		Steps:   Steps(Sleep(0), Settle()),
		World:   []Actor{{}, GC()},
		Masks:   []Mask{{}},
		Off:     map[Oracle]string{"O11": "none", OracleEndState: ""},
		Without: map[Fault]string{"flood": "too wet", FaultRestart: ""},
		With:    []Fault{"fire"},
	})
	if err == nil {
		t.Fatal("no error")
	}
	want := []string{
		"scenario: New and Setup exclude each other",
		"Owns, Watches, Filters and Indexes are for New: Setup registers its own",
		"For is required",
		"Owns[0] is required",
		"Watches[0].Requests or NewRequests is required",
		"Filters[0].Predicate is required",
		"Given[0] is required",
		"Steps[0] does nothing",
		"World[0].Name is required",
		"World[0].Act is required",
		"World[0].For is required",
		"Masks[0].Field is required",
		`Off: unknown oracle "O11"`,
		"Off[O2 end state]: a reason is required",
		`Without: unknown fault "flood"`,
		"Without[restart]: a reason is required",
		`With[0]: unknown fault "fire"`,
		"CRDs[0]: is required",
	}
	got := strings.Split(err.Error(), "\n")
	sortStrings := cmp.Transformer("sorted", func(lines []string) map[string]int {
		counts := map[string]int{}
		for _, line := range lines {
			counts[line]++
		}
		return counts
	})
	if diff := cmp.Diff(want, got, sortStrings); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestInvalidScenarios(t *testing.T) {
	usable := copierScenario(false)
	for name, c := range map[string]struct {
		change func(*Scenario)
		want   string
	}{
		"no scheme": {func(s *Scenario) { s.Scheme = nil }, "scenario: Scheme is required"},
		"an unknown kind": {
			func(s *Scenario) { s.Scheme = runtime.NewScheme() }, "For: no kind is registered for the type v1.Secret",
		},
		"no reconciler": {func(s *Scenario) { s.New = nil }, "New or Setup is required"},
		"a bad definition": {
			func(s *Scenario) { s.CRDs = []client.Object{&corev1.ConfigMap{}} }, "is not a CustomResourceDefinition",
		},
		"an unknown watched": {func(s *Scenario) { s.Watches = []Watch{{}} }, "Watches[0].Object is required"},
	} {
		t.Run(name, func(t *testing.T) {
			s := usable
			c.change(&s)
			if _, err := Check(t, s, Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestScenariosThatFail checks scenarios that fail without faults.
func TestScenariosThatFail(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Scenario)
		want   string
	}{
		"a step fails": {
			func(s *Scenario) { s.Steps = Steps(Update(newSecret("absent")), Settle()) },
			`step update Secret default/absent: secrets "absent" not found`,
		},
		"the given is invalid": {
			func(s *Scenario) { s.Given = []client.Object{newSecret("A")} }, "Given[0]: Secret \"A\" is invalid",
		},
		"New returns nil": {
			func(s *Scenario) { s.New = func(Env) reconcile.Reconciler { return nil } }, "New returned nil",
		},
		"an index twice": {func(s *Scenario) {
			s.Indexes = func(i client.FieldIndexer) error {
				none := func(client.Object) []string { return nil }
				_ = i.IndexField(context.Background(), &corev1.Secret{}, "field", none)
				return i.IndexField(context.Background(), &corev1.Secret{}, "field", none)
			}
		}, "Indexes: indexer conflict"},
		"the state is not the desired one": {
			func(s *Scenario) { s.Desired = func(State) error { return context.Canceled } }, "context canceled",
		},
		"the desired state reads an unknown kind": {func(s *Scenario) {
			s.Desired = func(state State) error {
				state.Get(&unstructured.Unstructured{})
				return nil
			}
		}, "State.Get of *unstructured.Unstructured"},
		"an actor does not stop": {func(s *Scenario) {
			s.World = []Actor{actorOn("one", &corev1.Secret{}, labeled), actorOn("other", &corev1.Secret{}, labeled)}
		}, "actor one does not stop: it has acted 2000 times"},
	} {
		t.Run(name, func(t *testing.T) {
			s := copierScenario(false)
			c.change(&s)
			report := mustCheck(t, s, DefaultOptions())
			if report.Failure == nil || !strings.Contains(report.Failure.Violation.Message, c.want) {
				t.Errorf("got %v, want %q", report.Failure, c.want)
			}
		})
	}
}

// labeled changes an object with each call.
func labeled(ctx context.Context, c client.Client, obj *corev1.Secret) error {
	metav1.SetMetaDataLabel(&obj.ObjectMeta, "version", obj.ResourceVersion)
	return c.Update(ctx, obj)
}
