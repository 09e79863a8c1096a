// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge/internal/inject"
)

// refusedScenario has a reconciler that creates two config maps and a service in each reconcile, and notes the errors.
func refusedScenario(errs *[]string) Scenario {
	s := copierScenario(false)
	s.New = func(e Env) reconcile.Reconciler {
		return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
			secret := &corev1.Secret{}
			if err := e.APIReader.Get(ctx, req.NamespacedName, secret); err != nil {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			meta := func(name string) metav1.ObjectMeta {
				return metav1.ObjectMeta{Namespace: req.Namespace, Name: name, OwnerReferences: []metav1.OwnerReference{
					*metav1.NewControllerRef(secret, corev1.SchemeGroupVersion.WithKind("Secret")),
				}}
			}
			var failed error
			for _, obj := range []client.Object{
				&corev1.ConfigMap{ObjectMeta: meta("a")}, &corev1.ConfigMap{ObjectMeta: meta("b")},
				&corev1.ServiceAccount{ObjectMeta: meta("c")},
			} {
				if err := client.IgnoreAlreadyExists(e.Client.Create(ctx, obj)); err != nil {
					failed = err
					*errs = append(*errs, err.Error())
				}
			}
			return reconcile.Result{}, failed
		})
	}
	s.Owns = append(s.Owns, &corev1.ServiceAccount{})
	s.Steps = Steps(Apply(newSecret("a")), Settle())
	s.With = []Fault{FaultQuota, FaultForbidden}
	return s
}

// TestRefusedRequests refuses requests like the one of the fault until the controller is idle, and no others.
func TestRefusedRequests(t *testing.T) {
	forbidden := func(name string) string {
		return name + ` is forbidden: User "system:serviceaccount:system:controller-manager" cannot create resource ` +
			`"configmaps" in API group "" in the namespace "default"`
	}
	exceeded := func(name string) string {
		return `configmaps "` + name + `" is forbidden: exceeded quota: converge, requested: count/configmaps=1, used: ` +
			`count/configmaps=0, limited: count/configmaps=0`
	}
	for fault, want := range map[Fault][]string{
		FaultQuota:     {exceeded("a"), exceeded("b")},
		FaultForbidden: {forbidden("configmaps")},
	} {
		t.Run(string(fault), func(t *testing.T) {
			var errs []string
			p, reference := referred(t, refusedScenario(&errs))
			at := slices.IndexFunc(reference.Points, func(m inject.Injectable) bool {
				return m.Act == "create" && m.Kind == "ConfigMap" && m.Faults.Has(fault)
			})
			if at < 0 {
				t.Fatal("the fault applies nowhere")
			}
			errs = nil
			o := p.execute(t, inject.Schedule{{Point: reference.Points[at].Point, Fault: fault}}, p.usual(), nil)
			if len(o.Violations) > 0 || o.Injected != 1 {
				t.Errorf("%d faults, %v", o.Injected, o.Violations)
			}
			slices.Sort(errs)
			errs = slices.Compact(errs) // two reconciles meet it
			if diff := cmp.Diff(want, errs); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}
