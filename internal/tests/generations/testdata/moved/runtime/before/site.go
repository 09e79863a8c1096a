// SPDX-License-Identifier: Apache-2.0

// Package site has a controller as it is written for reconciler.io runtime v0.23 and later.
package site

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"reconciler.io/runtime/apis"
	"reconciler.io/runtime/duck"
	"reconciler.io/runtime/reconcilers"
	"reconciler.io/runtime/stash"
	rtime "reconciler.io/runtime/time"
	"reconciler.io/runtime/tracker"
	"reconciler.io/runtime/validation"
)

func Reconciler(c reconcilers.Config) *reconcilers.ResourceReconciler[*corev1.ConfigMap] {
	return &reconcilers.ResourceReconciler[*corev1.ConfigMap]{
		Name:             "Site",
		SkipStatusUpdate: true,
		Reconciler: reconcilers.Sequence[*corev1.ConfigMap]{
			&reconcilers.SyncReconciler[*corev1.ConfigMap]{
				Sync: func(ctx context.Context, resource *corev1.ConfigMap) error {
					theme := &corev1.ConfigMap{}
					key := types.NamespacedName{Namespace: resource.Namespace, Name: "theme"}
					if err := reconcilers.RetrieveConfigOrDie(ctx).TrackAndGet(ctx, key, theme); err != nil {
						return client.IgnoreNotFound(err)
					}
					stash.StoreValue(ctx, colorKey, theme.Data["color"])
					return nil
				},
			},
			&reconcilers.ChildReconciler[*corev1.ConfigMap, *corev1.Secret, *corev1.SecretList]{
				DesiredChild: func(_ context.Context, resource *corev1.ConfigMap) (*corev1.Secret, error) {
					return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: resource.Namespace, Name: resource.Name}}, nil
				},
				ChildObjectManager: &reconcilers.UpdatingObjectManager[*corev1.Secret]{
					MergeBeforeUpdate: func(current, desired *corev1.Secret) { current.Data = desired.Data },
				},
				ReflectChildStatusOnParent: func(_ context.Context, parent *corev1.ConfigMap, child *corev1.Secret, _ error) {
					parent.Data = map[string]string{"secret": child.Name}
				},
			},
		},
		Config: c,
	}
}

const colorKey stash.Key = "color"

// NewConfig returns the config of a manager, for a cluster beside its own.
func NewConfig(mgr manager.Manager, elsewhere cluster.Cluster) reconcilers.Config {
	return reconcilers.NewConfig(mgr, &corev1.ConfigMap{}, 10*time.Hour).WithCluster(elsewhere)
}

var conditions = apis.NewLivingConditionSet()

// Ready reports whether the conditions of a status are true.
func Ready(ctx context.Context, status *apis.Status) bool {
	return conditions.ManageWithContext(ctx, status).IsHappy()
}

// Reference is a reference to the theme.
var Reference = tracker.Reference{Kind: "ConfigMap", Name: "theme"}

// Ducks reads and writes types that no scheme has.
func Ducks(c client.Client) client.Client { return duck.NewDuckAwareClientWrapper(c) }

// Started returns the time of the request.
func Started(ctx context.Context) time.Time { return rtime.RetrieveNow(ctx) }

// Check lists mistakes.
func Check(ctx context.Context, c reconcilers.Config) error {
	return Reconciler(c).Validate(validation.WithRecursive(ctx))
}
