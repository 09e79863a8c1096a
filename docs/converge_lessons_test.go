// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
)

// lesson is the content of the page of a fault or an oracle: wrong code and correct code.
type lesson struct {
	wrong, right converge.Scenario
	// oracle finds the bug in the wrong code.
	oracle converge.Oracle
}

// parent has the clients of the reconcilers of most lessons.
type parent struct {
	client.Client

	Live  client.Reader
	Cloud converge.Cloud
	// memory is lost with the process.
	memory map[string]bool
}

// part reconciles a Secret and the ConfigMap that must have its value.
type part func(ctx context.Context, r *parent, owner *corev1.Secret, child *corev1.ConfigMap) error

// copying is a scenario in which a Secret is created and then changed by the steps.
func copying(do part, steps ...converge.Step) converge.Scenario {
	if len(steps) == 0 {
		steps = converge.Steps(converge.Apply(aSecret()), converge.Settle())
	}
	return converge.Scenario{
		Scheme: scheme,
		For:    &corev1.Secret{},
		Owns:   []client.Object{&corev1.ConfigMap{}},
		Steps:  steps,
		New: func(e converge.Env) reconcile.Reconciler {
			r := &parent{e.Client, e.APIReader, e.Cloud, map[string]bool{}}
			return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
				owner := &corev1.Secret{}
				if err := r.Get(ctx, req.NamespacedName, owner); err != nil || owner.DeletionTimestamp != nil {
					return reconcile.Result{}, client.IgnoreNotFound(err)
				}
				child := &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Namespace: owner.Namespace, Name: owner.Name},
					Data:       map[string]string{"value": string(owner.Data["value"])},
				}
				if err := controllerutil.SetControllerReference(owner, child, scheme); err != nil {
					return reconcile.Result{}, err
				}
				return reconcile.Result{}, do(ctx, r, owner, child)
			})
		},
	}
}

func aSecret() *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}, Data: map[string][]byte{"value": []byte("1")},
	}
}

// changed is a lifecycle with a change, and without the deletion.
func changed() []converge.Step {
	return converge.Steps(
		converge.Apply(aSecret()), converge.Settle(),
		converge.Change(aSecret(), func(s *corev1.Secret) { s.Data["value"] = []byte("2") }), converge.Settle(),
	)
}

// only disables all faults except the given ones.
func only(s converge.Scenario, faults ...converge.Fault) converge.Scenario {
	s.Without = map[converge.Fault]string{}
	for fault := range faultLessons {
		if slices.Contains(faults, fault) {
			s.With = append(slices.Clip(s.With), fault)
		} else {
			s.Without[fault] = "the lesson is about another one"
		}
	}
	return s
}

// singles injects every single fault, and no combinations.
var singles = converge.Options{Seed: 1}

// TestConvergeLessons_faults checks that each fault finds the bug on its page, and that all faults together find none
// in the correct code.
func TestConvergeLessons_faults(t *testing.T) {
	for _, fault := range slices.Sorted(maps.Keys(faultLessons)) {
		t.Run(string(fault), func(t *testing.T) {
			l := faultLessons[fault]
			f := failureOf(t, only(l.wrong, fault))
			if f == nil {
				t.Fatal("the bug is not found")
			}
			if f.Violation.Oracle != l.oracle || !strings.Contains(f.Replay, ":"+string(fault)+"@") {
				t.Errorf("found by %s, want %s:\n%s", f.Violation.Oracle, l.oracle, f)
			}
			right := l.right
			if !slices.Contains(right.With, fault) {
				right.With = append(slices.Clip(right.With), fault)
			}
			if f := failureOf(t, right); f != nil {
				t.Errorf("the correct code fails:\n%s", f)
			}
		})
	}
}

// TestConvergeLessons_oracles checks that each oracle finds the bug on its page.
func TestConvergeLessons_oracles(t *testing.T) {
	for _, oracle := range slices.Sorted(maps.Keys(oracleLessons)) {
		t.Run(string(oracle), func(t *testing.T) {
			l := oracleLessons[oracle]
			if f := failureOf(t, l.wrong); f == nil || f.Violation.Oracle != oracle {
				t.Errorf("%s does not find the bug:\n%v", oracle, f)
			}
			if f := failureOf(t, l.right); f != nil {
				t.Errorf("the correct code fails:\n%s", f)
			}
		})
	}
}

func failureOf(t *testing.T, s converge.Scenario) *converge.Failure {
	t.Helper()
	report, err := converge.Check(t, s, singles)
	if err != nil {
		t.Fatal(err)
	}
	return report.Failure
}
