// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestLeftOver has two controllers. The second one creates objects for a ServiceAccount that users have given, which
// remain because their owner exists. An object without an owner is left over.
func TestLeftOver(t *testing.T) {
	for _, c := range []struct {
		name  string
		owned bool
		want  string
	}{
		{name: "owned by a given object", owned: true},
		{name: "without an owner", want: "ConfigMap default/pool is left over: its owner no longer exists"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := controllerScenario(false)
			s.Given = []client.Object{&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pool"}}}
			secrets := s.Setup
			s.Setup = func(mgr ctrl.Manager) error {
				if err := secrets(mgr); err != nil {
					return err
				}
				return ctrl.NewControllerManagedBy(mgr).For(&corev1.ServiceAccount{}).Owns(&corev1.ConfigMap{}).Complete(
					&pooler{Client: mgr.GetClient(), owned: c.owned},
				)
			}
			switch f := foundIn(t, s); {
			case c.want == "" && f != nil:
				t.Error(f)
			case c.want != "" && (f == nil || f.Violation.Oracle != OracleDeletion || f.Violation.Message != c.want):
				t.Errorf("got %v, want %q", f, c.want)
			}
		})
	}
}

// pooler creates a ConfigMap for each ServiceAccount.
type pooler struct {
	client.Client

	owned bool
}

func (p *pooler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	account := &corev1.ServiceAccount{}
	if err := p.Get(ctx, req.NamespacedName, account); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	configMap := &corev1.ConfigMap{}
	if err := p.Get(ctx, req.NamespacedName, configMap); !apierrs.IsNotFound(err) {
		if err == nil && p.owned && !metav1.IsControlledBy(configMap, account) {
			err = apierrs.NewConflict(corev1.Resource("configmaps"), req.Name, nil)
		}
		return reconcile.Result{}, err
	}
	configMap.Namespace, configMap.Name = req.Namespace, req.Name
	if p.owned {
		if err := controllerutil.SetControllerReference(account, configMap, p.Scheme()); err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{}, p.Create(ctx, configMap)
}
