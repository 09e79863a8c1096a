// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// copied returns an error if a ConfigMap differs from the Secret that it copies.
func copied(s State) error {
	secret := newSecret("a")
	if !s.Get(secret) {
		return nil
	}
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
	if !s.Get(configMap) || configMap.Data["value"] != string(secret.Data["value"]) {
		return fmt.Errorf("the copy is %q, want %q", configMap.Data["value"], secret.Data["value"])
	}
	return nil
}

// TestFilters has filters that drop nothing that matters, and filters that drop too much.
func TestFilters(t *testing.T) {
	for _, c := range []struct {
		name    string
		filters []Filter
		wrong   bool
	}{
		{name: "without an effect", filters: []Filter{{Predicate: predicate.ResourceVersionChangedPredicate{}}}},
		{name: "another kind", filters: []Filter{{Object: &corev1.Pod{}, Predicate: predicate.NewPredicateFuncs(
			func(client.Object) bool { return false },
		)}}},
		{name: "changes of primary objects", wrong: true, filters: []Filter{{
			Object: &corev1.Secret{}, Predicate: predicate.GenerationChangedPredicate{}, // Secrets have no generation
		}}},
		{name: "deletions of owned objects", wrong: true, filters: []Filter{{
			Object: &corev1.ConfigMap{}, Predicate: predicate.Funcs{DeleteFunc: func(event.DeleteEvent) bool { return false }},
		}}},
		{name: "everything", wrong: true, filters: []Filter{{
			Predicate: predicate.NewPredicateFuncs(func(client.Object) bool { return false }),
		}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := copierScenario(false)
			s.Filters, s.Desired = c.filters, copied
			switch f := foundIn(t, s); {
			case c.wrong && (f == nil || f.Violation.Oracle != OracleEndState):
				t.Errorf("got %v, want a wrong copy", f)
			case !c.wrong && f != nil:
				t.Error(f)
			}
		})
	}
}

// TestNewRequests has a watch whose function uses the client: the label of a ServiceAccount belongs into all
// ConfigMaps.
func TestNewRequests(t *testing.T) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "account"}}
	s := secretScenario(func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
		found := account.DeepCopy()
		if err := e.Client.Get(ctx, client.ObjectKeyFromObject(account), found); err != nil {
			return reconcile.Result{}, err
		}
		configMap := configMapOf(secret, true)
		err := client.IgnoreNotFound(e.Client.Get(ctx, client.ObjectKeyFromObject(secret), configMap))
		if err != nil || configMap.Data["value"] == found.Labels["value"] && configMap.UID != "" {
			return reconcile.Result{}, err
		}
		configMap.Data = map[string]string{"value": found.Labels["value"]}
		if configMap.UID != "" {
			return reconcile.Result{}, e.Client.Update(ctx, configMap)
		}
		return reconcile.Result{}, e.Client.Create(ctx, configMap)
	})
	s.Given = []client.Object{account}
	s.Watches = []Watch{{Object: &corev1.ServiceAccount{}, NewRequests: func(e Env) handler.MapFunc {
		return func(ctx context.Context, _ client.Object) []reconcile.Request {
			secrets := &corev1.SecretList{}
			if err := e.Client.List(ctx, secrets); err != nil {
				return nil
			}
			var requests []reconcile.Request
			for _, secret := range secrets.Items {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&secret)})
			}
			return requests
		}
	}}}
	s.Steps = Steps(Apply(newSecret("a")), Settle(), Change(account, func(a *corev1.ServiceAccount) {
		a.Labels = map[string]string{"value": "2"}
	}), Settle())
	s.Desired = func(state State) error {
		found, configMap := account.DeepCopy(), configMapOf(newSecret("a"), false)
		if !state.Get(found) || !state.Get(configMap) || configMap.Data["value"] != found.Labels["value"] {
			return errors.New("the ConfigMap does not have the label")
		}
		return nil
	}
	if f := foundIn(t, s); f != nil {
		t.Error(f)
	}
	s.Watches[0].NewRequests = func(Env) handler.MapFunc { return nil }
	if f := foundIn(t, s); f == nil || f.Violation.Message != "Watches[0].NewRequests returned nil" {
		t.Errorf("got %v, want that there is no function", f)
	}
}
