// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// assignedScenario has two programs that mark the secrets that a label assigns to them. A program that does not look at
// the label marks all of them.
func assignedScenario(looks bool, last string) Scenario {
	program := func(name string) Program {
		return Program{
			Name:     name,
			Assigned: func(secret client.Object) bool { return secret.GetLabels()["of"] == name },
			Setup: setupOf(name, &corev1.Secret{}, func(
				ctx context.Context, c client.Client, secret *corev1.Secret,
			) (reconcile.Result, error) {
				if secret.Annotations["by"] == name || looks && secret.Labels["of"] != name ||
					!looks && secret.Annotations["by"] != "" {
					return reconcile.Result{}, nil
				}
				before := secret.DeepCopy()
				metav1.SetMetaDataAnnotation(&secret.ObjectMeta, "by", name)
				return reconcile.Result{}, c.Patch(
					ctx, secret, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}),
				)
			}),
		}
	}
	s := controllerScenario(false)
	s.Setup = func(manager.Manager) error { return nil }
	s.Programs = []Program{program("a"), program("b")}
	secret := newSecret("a")
	secret.Labels = map[string]string{"of": "b"}
	s.Steps = Steps(Apply(secret), Settle(), Change(secret, func(s *corev1.Secret) { s.Labels["of"] = last }), Settle())
	return s
}

// TestAssignment checks OracleAssignment.
func TestAssignment(t *testing.T) {
	for name, tc := range map[string]struct {
		looks   bool
		last    string
		message string
		cause   Cause
	}{
		"correct": {looks: true, last: "a"},
		"a program that ignores the label": {
			last: "a", cause: CauseNotAssigned,
			message: "a writes Secret default/a, although Secret default/a is assigned to b",
		},
		"no program has it": {
			looks: true, last: "c", cause: CauseUnassigned, message: "Secret default/a is assigned to no program",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := foundIn(t, assignedScenario(tc.looks, tc.last))
			if f == nil {
				if tc.message != "" {
					t.Error("nothing was found")
				}
				return
			}
			if v := f.Violation; v.Oracle != OracleAssignment || v.Cause != tc.cause || v.Message != tc.message {
				t.Errorf("got %s (%s), want %q (%s)\n%s", v, v.Cause, tc.message, tc.cause, f)
			}
		})
	}
}

// TestApplyOptions_Problems lists all problems.
func TestApplyOptions_Problems(t *testing.T) {
	if err := ApplyOptions(struct{ manager.Manager }{}, manager.Options{}); err == nil ||
		!strings.Contains(err.Error(), "not the one of a scenario") {
		t.Errorf("got %v", err)
	}
	for name, tc := range map[string]struct {
		options manager.Options
		// twice applies the options twice, and withNew does it in a scenario without Setup.
		twice, withNew bool
		want           []string
	}{
		"twice":    {twice: true, want: []string{"the manager already has options"}},
		"with New": {withNew: true, want: []string{"the scenario must have Setup, not New"}},
		"valid": {options: ctrl.Options{
			LeaderElection: true, LeaderElectionID: "a", LeaderElectionNamespace: "default",
			LeaseDuration: new(time.Hour), RenewDeadline: new(40 * time.Minute), RetryPeriod: new(20 * time.Minute),
		}},
		"leader election": {
			options: ctrl.Options{LeaderElection: true, LeaseDuration: new(15 * time.Second)},
			want: []string{
				"LeaderElectionID is required", "LeaderElectionNamespace is required", "RenewDeadline is required",
				"RetryPeriod is required", "LeaseDuration must be at least 10m0s, got 15s: virtual time passes quickly",
			},
		},
		"durations": {
			options: ctrl.Options{
				LeaderElection: true, LeaderElectionID: "a", LeaderElectionNamespace: "default",
				LeaseDuration: new(time.Hour), RenewDeadline: new(time.Hour), RetryPeriod: new(time.Hour),
			},
			want: []string{
				"LeaseDuration must be greater than RenewDeadline",
				"RetryPeriod must be greater than 0 and less than RenewDeadline",
			},
		},
		"caches": {
			options: ctrl.Options{Cache: cache.Options{
				DefaultLabelSelector: labels.Everything(), DefaultFieldSelector: fields.Everything(),
				DefaultTransform: cache.TransformStripManagedFields(), DefaultNamespaces: map[string]cache.Config{"a": {}},
				ByObject: map[client.Object]cache.ByObject{
					&corev1.Secret{}: {
						Field: fields.Everything(), Transform: cache.TransformStripManagedFields(),
						Namespaces: map[string]cache.Config{"a": {}},
					},
					&unregistered{}: {},
				},
			}},
			want: []string{
				"Cache.DefaultLabelSelector is not", "Cache.DefaultFieldSelector is not", "Cache.DefaultTransform is not",
				"Cache.DefaultNamespaces is not", "Cache.ByObject[Secret].Field is not",
				"Cache.ByObject[Secret].Transform is not", "Cache.ByObject[Secret].Namespaces is not",
				"Cache.ByObject: no kind is registered",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := controllerScenario(false)
			var err error
			s.Setup = func(mgr manager.Manager) error {
				if err = ApplyOptions(mgr, tc.options); tc.twice {
					err = ApplyOptions(mgr, tc.options)
				}
				return nil
			}
			if tc.withNew {
				s = copierScenario(false)
				s.New = func(e Env) reconcile.Reconciler {
					err = ApplyOptions(e.Manager, tc.options)
					return &copier{e.Client, false}
				}
			}
			mustPlan(t, s).refer(t)
			if len(tc.want) == 0 && err != nil {
				t.Error(err)
			}
			for _, want := range tc.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q", err, want)
				}
			}
		})
	}
}

// unregistered is of no kind.
type unregistered struct{ corev1.Secret }

func (u *unregistered) DeepCopyObject() runtime.Object { return u }
