// SPDX-License-Identifier: Apache-2.0

package site

import (
	"context"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/vmware-labs/reconciler-runtime/reconcilers"
	rtesting "github.com/vmware-labs/reconciler-runtime/testing"
	"github.com/vmware-labs/reconciler-runtime/tracker"
)

// Watches watches in the forms of the versions of controller-runtime of that time.
func Watches() reconcilers.SubReconciler[*corev1.ConfigMap] {
	return &reconcilers.SyncReconciler[*corev1.ConfigMap]{
		Setup: func(ctx context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder) error {
			bldr.Watches(&source.Kind{Type: &corev1.Secret{}}, reconcilers.EnqueueTracked(ctx, &corev1.Secret{}))
			bldr.Watches(&source.Kind{Type: &corev1.Node{}}, handler.EnqueueRequestsFromMapFunc(func(o client.Object) []reconcile.Request {
				// every node
				return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: o.GetName()}}}
			}))
			bldr.Watches(&source.Kind{Type: &corev1.Pod{}}, handler.EnqueueRequestsFromMapFunc(requestsFor))
			return nil
		},
		Sync: func(ctx context.Context, site *corev1.ConfigMap) error {
			c := reconcilers.RetrieveConfigOrDie(ctx)
			key := tracker.NewKey(corev1.SchemeGroupVersion.WithKind("Secret"), client.ObjectKeyFromObject(site))
			c.Tracker.Track(ctx, key, client.ObjectKeyFromObject(site))
			return nil
		},
	}
}

func requestsFor(o client.Object) []reconcile.Request { return nil }

// Webhook serves the webhooks.
func Webhook(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr).
		For(&corev1.ConfigMap{}).
		Complete()
}

// NewConfig is for another cluster.
func NewConfig(mgr ctrl.Manager) reconcilers.Config {
	return reconcilers.Config{Client: mgr.GetClient(), Tracker: tracker.New(time.Hour)}
}

// Same compares quantities.
func Same(a, b resource.Quantity) bool { return cmp.Diff(a, b, rtesting.SafeDeployDiff) == "" }
