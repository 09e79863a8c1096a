// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// forgetful creates two config maps, the second one without an owner. It does not recreate them.
func forgetful(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
	if secret.DeletionTimestamp != nil || secret.Annotations["made"] != "" {
		return reconcile.Result{}, nil
	}
	second := configMapOf(secret, false)
	second.Name = "second"
	for _, configMap := range []*corev1.ConfigMap{configMapOf(secret, true), second} {
		if err := ensure(ctx, e, configMap); err != nil {
			return reconcile.Result{}, err
		}
	}
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, "made", "yes")
	return reconcile.Result{}, e.Client.Update(ctx, secret)
}

// TestExceptions checks that exceptions apply to their objects and steps, and to nothing else.
func TestExceptions(t *testing.T) {
	kept := Exception{Oracle: OracleDeletion, Object: &corev1.ConfigMap{}, Name: "default/second", Reason: "it is kept"}
	deleted := func(name string, step int) Exception {
		return Exception{Fault: FaultChildDeleted, Object: &corev1.ConfigMap{}, Name: name, Step: step, Reason: "rare"}
	}
	for name, c := range map[string]struct {
		except []Exception
		want   string
	}{
		"all": {[]Exception{kept, deleted("", 0)}, ""},
		"of one object": {
			[]Exception{kept, deleted("default/second", 0)}, "O2 end state: ConfigMap default/a is missing",
		},
		"of both objects": {[]Exception{kept, deleted("default/second", 0), deleted("default/a", 2)}, ""},
		"in another step": {[]Exception{kept, deleted("", 4)}, "O2 end state: ConfigMap default/a is missing"},
		"of another object": {
			[]Exception{{Oracle: OracleDeletion, Name: "default/a", Reason: "no"}}, "default/second is left over",
		},
		"of the other oracle": {[]Exception{{Oracle: OracleEndState, Step: 2, Reason: "no"}}, "default/second is left over"},
	} {
		t.Run(name, func(t *testing.T) {
			s := secretScenario(forgetful)
			a := newSecret("a")
			s.Steps = Steps(Apply(a), Settle(), Delete(a), Settle())
			s.Except, s.Without = c.except, map[Fault]string{
				FaultTaken: "names are not checked", FaultExists: "neither", FaultMeanwhile: "nor that",
			}
			p := mustPlan(t, s)
			report := p.check(t, Options{Seed: 1})
			switch f := report.Failure; {
			case c.want == "" && f != nil:
				t.Errorf("a false alarm:\n%s", f)
			case c.want != "" && (f == nil || !strings.Contains(f.Violation.String(), c.want)):
				t.Errorf("got %v, want %s", f, c.want)
			}
			for _, e := range p.except {
				if !strings.Contains(p.certificate(report), e.String()) {
					t.Errorf("the certificate does not say %q:\n%s", e, p.certificate(report))
				}
			}
		})
	}
}

// TestExceptions_problems checks that all mistakes are reported.
func TestExceptions_problems(t *testing.T) {
	s := copierScenario(false)
	s.Except = []Exception{
		{Step: 1, Reason: "no fault"},
		{Fault: FaultTaken, Oracle: OracleStatus, Step: 1, Reason: "both"},
		{Fault: "flood", Step: 1},
		{Oracle: OracleDuplicates, Step: 99, Reason: "too far"},
		{Oracle: OracleStatus, Reason: "everywhere"},
	}
	_, err := newPlan(s)
	want := `scenario: Except[0]: Fault or Oracle is required, and not both
Except[1]: Fault or Oracle is required, and not both
Except[2]: unknown fault "flood"
Except[2]: a reason is required
Except[3].Step must be a number from 1 to 6, got 99
Except[3].Step: O4 duplicates checks the whole run
Except[4]: Object, Name or Step is required; Without and Off are for all`
	if err == nil {
		t.Fatal("no error")
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}
