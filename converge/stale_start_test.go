// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestStaleStartShowsEarlierLife deletes what belongs to another incarnation of the owner than the incarnation in the
// cache. The cache has to be six events old for that. The correct twin asks the API server first.
func TestStaleStartShowsEarlierLife(t *testing.T) {
	scenario := func(asks bool) Scenario {
		s := secretScenario(func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
			child := &corev1.ConfigMap{}
			err := e.Client.Get(ctx, client.ObjectKeyFromObject(secret), child)
			switch {
			case apierrs.IsNotFound(err):
				child = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: secret.Namespace, Name: secret.Name}}
				if err := controllerutil.SetControllerReference(secret, child, e.Scheme); err != nil {
					return reconcile.Result{}, err
				}
				return reconcile.Result{}, e.Client.Create(ctx, child)
			case err != nil || metav1.IsControlledBy(child, secret):
				return reconcile.Result{}, err
			}
			if owner := metav1.GetControllerOf(child); owner == nil || owner.Name != secret.Name {
				return reconcile.Result{}, apierrs.NewConflict(corev1.Resource("configmaps"), child.Name, nil)
			}
			if asks {
				current := &corev1.Secret{}
				if err := e.APIReader.Get(ctx, client.ObjectKeyFromObject(secret), current); err != nil {
					return reconcile.Result{}, client.IgnoreNotFound(err)
				}
				if current.UID != secret.UID {
					return reconcile.Result{}, nil // an event will follow
				}
			}
			err = e.Client.Delete(ctx, child, client.Preconditions{UID: &child.UID})
			return reconcile.Result{}, client.IgnoreNotFound(err)
		})
		s.Owns = []client.Object{&corev1.ConfigMap{}}
		s.Consistency = TimeTravel
		label := func(value string) Step {
			return Change(newSecret("a"), func(s *corev1.Secret) { s.Labels = map[string]string{"step": value} })
		}
		s.Steps = Steps(
			Apply(newSecret("a")), Settle(), Delete(newSecret("a")), Settle(),
			Apply(newSecret("a")), label("1"), label("2"), label("3"), label("4"), Settle(),
		)
		return s
	}
	f := mustCheck(t, scenario(false), Options{Seed: 1}).Failure
	if f == nil || len(f.schedule) != 1 || f.schedule[0].Fault != FaultStaleStart ||
		!strings.Contains(f.schedule[0].Point.String(), "6 back") {
		t.Errorf("got %v, want that a stale start six events back is found", f)
	}
	converges(t, scenario(true), Options{Seed: 1})
}
