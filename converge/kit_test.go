// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge/internal/judge"
	"trueup.dev/internal/engine/calledby"
)

// copier keeps a config map with the data of a secret.
type copier struct {
	client.Client

	// generated lets the API server generate the name of the ConfigMap, so that a lost response leads to a second one.
	generated bool
}

func (c *copier) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	secret := &corev1.Secret{}
	if err := c.Get(ctx, req.NamespacedName, secret); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	configMaps := &corev1.ConfigMapList{}
	if err := c.List(ctx, configMaps, client.InNamespace(req.Namespace)); err != nil {
		return reconcile.Result{}, err
	}
	value := string(secret.Data["value"])
	for _, found := range configMaps.Items {
		if !metav1.IsControlledBy(&found, secret) {
			continue
		}
		if found.Data["value"] == value {
			return reconcile.Result{}, nil
		}
		found.Data = map[string]string{"value": value}
		return reconcile.Result{}, c.Update(ctx, &found)
	}
	configMap := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: req.Namespace, Name: req.Name}, Data: map[string]string{"value": value},
	}
	if c.generated {
		configMap.Name, configMap.GenerateName = "", req.Name+"-"
	}
	if err := controllerutil.SetControllerReference(secret, configMap, scheme.Scheme); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, c.Create(ctx, configMap)
}

func newSecret(name string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string][]byte{"value": []byte("1")},
	}
}

// copierScenario calls the copier directly.
func copierScenario(generated bool) Scenario {
	return Scenario{
		Scheme: scheme.Scheme,
		New:    func(e Env) reconcile.Reconciler { return &copier{e.Client, generated} },
		For:    &corev1.Secret{},
		Owns:   []client.Object{&corev1.ConfigMap{}},
		Steps:  Lifecycle(newSecret("a"), func(s *corev1.Secret) { s.Data = map[string][]byte{"value": []byte("2")} }),
	}
}

// controllerScenario runs the copier in a controller.
func controllerScenario(generated bool) Scenario {
	s := copierScenario(generated)
	s.New, s.Owns = nil, nil
	s.Setup = func(mgr ctrl.Manager) error {
		return ctrl.NewControllerManagedBy(mgr).For(&corev1.Secret{}).Owns(&corev1.ConfigMap{}).Complete(&copier{
			mgr.GetClient(), generated,
		})
	}
	return s
}

// referred returns the plan of a scenario whose runs without faults do not fail, and the usual one of these.
func referred(t *testing.T, s Scenario) (*plan, judge.Outcome) {
	t.Helper()
	p := mustPlan(t, s)
	reference, ok := p.refer(t)
	if !ok {
		t.Fatal(reference.Violations)
	}
	return p, reference
}

// mustCheck checks a valid scenario.
func mustCheck(t *testing.T, s Scenario, o Options) *Report {
	t.Helper()
	report, err := Check(t, s, o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// converges checks a scenario that must not fail.
func converges(t *testing.T, s Scenario, o Options) *Report {
	t.Helper()
	report := mustCheck(t, s, o)
	if report.Failure != nil {
		t.Fatal(report.Failure)
	}
	return report
}

func mustPlan(t testing.TB, s Scenario) *plan {
	t.Helper()
	p, err := newPlan(s)
	if err != nil {
		t.Fatal(err)
	}
	p.seed = 1
	calledby.Controller()
	return p
}
