// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge/internal/phrase"
)

// accountsActor creates a ServiceAccount with the name of each ConfigMap, and one with a generated name if generated is
// set.
func accountsActor(generated bool) Actor {
	accounts := actorOn("accounts", &corev1.ConfigMap{}, func(
		ctx context.Context, c client.Client, m *corev1.ConfigMap,
	) error {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name}}
		if generated {
			account.GenerateName = m.Name + "-"
			accounts := &corev1.ServiceAccountList{}
			err := c.List(ctx, accounts, client.InNamespace(m.Namespace))
			if err != nil || slices.ContainsFunc(accounts.Items, func(a corev1.ServiceAccount) bool {
				return metav1.IsControlledBy(&a, m)
			}) {
				return err
			}
			account.Name = ""
		}
		if err := controllerutil.SetControllerReference(m, account, scheme.Scheme); err != nil {
			return err
		}
		return client.IgnoreAlreadyExists(c.Create(ctx, account))
	})
	accounts.Owns = []client.Object{&corev1.ServiceAccount{}}
	return accounts
}

// TestActorsThatCreate checks that what an actor creates does not count as created by the reconciler, whether it acts
// early or late. The duplicates of a reconciler still count.
func TestActorsThatCreate(t *testing.T) {
	for _, c := range []struct {
		actor, reconciler bool
		want              Oracle
	}{
		{actor: false}, {actor: true}, {reconciler: true, want: OracleDuplicates},
	} {
		t.Run(fmt.Sprintf("generated names by actor %v, by reconciler %v", c.actor, c.reconciler), func(t *testing.T) {
			s := copierScenario(c.reconciler)
			s.World = []Actor{accountsActor(c.actor)}
			if f := foundIn(t, s); c.want == "" && f != nil || c.want != "" && (f == nil || f.Violation.Oracle != c.want) {
				t.Errorf("got %v, want %q", f, c.want)
			}
		})
	}
}

// TestActorsForGivenObjects lets an actor act early on an object that exists before the process.
func TestActorsForGivenObjects(t *testing.T) {
	s := copierScenario(false)
	s.Given = []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "given"}}}
	s.World = []Actor{accountsActor(false)}
	early := 0
	s.New = func(e Env) reconcile.Reconciler {
		key := client.ObjectKey{Namespace: "default", Name: "given"}
		if e.APIReader.Get(t.Context(), key, &corev1.ServiceAccount{}) == nil {
			early++
		}
		return &copier{Client: e.Client}
	}
	if f := foundIn(t, s); f != nil {
		t.Error(f)
	}
	if early == 0 {
		t.Error("the actor has never acted before the process has started")
	}
}

// TestActorsOwn has an actor for ConfigMaps that reads what another actor writes to the ServiceAccounts that they own.
func TestActorsOwn(t *testing.T) {
	s := copierScenario(false)
	s.Steps = Lifecycle(newSecret("a"))
	ready := 0
	counter := actorOn("counter", &corev1.ConfigMap{}, func(
		ctx context.Context, c client.Client, m *corev1.ConfigMap,
	) error {
		account := &corev1.ServiceAccount{}
		if err := c.Get(ctx, client.ObjectKeyFromObject(m), account); err != nil {
			return client.IgnoreNotFound(err)
		}
		if account.Labels["ready"] == "true" {
			ready++
		}
		return nil
	})
	labels := actorOn("labels", &corev1.ServiceAccount{}, func(
		ctx context.Context, c client.Client, a *corev1.ServiceAccount,
	) error {
		a.Labels = map[string]string{"ready": "true"}
		return c.Update(ctx, a)
	})
	for _, owns := range [][]client.Object{nil, {&corev1.ServiceAccount{}}} {
		counter.Owns, ready = owns, 0
		s.World = []Actor{accountsActor(false), counter, labels}
		p := mustPlan(t, s)
		p.execute(t, nil, p.usual(), nil)
		if want := len(owns) > 0; ready > 0 != want {
			t.Errorf("with %d kinds in Owns the actor has seen the label %d times", len(owns), ready)
		}
	}
}

func TestActorsNeedTheirOwnName(t *testing.T) {
	s := copierScenario(false)
	s.World = []Actor{accountsActor(false)}
	s.World[0].Name = phrase.Manager
	if _, err := newPlan(s); err == nil {
		t.Error("an actor has the name of another client")
	}
}

// foundIn returns the failure of a scenario, or nil.
func foundIn(t *testing.T, s Scenario) *Failure {
	t.Helper()
	return mustCheck(t, s, DefaultOptions()).Failure
}
