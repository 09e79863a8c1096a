// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/reconcilers"
)

// region migration-function
// was ParentReconciler
func FunctionReconciler(c reconcilers.Config) *reconcilers.ResourceReconciler[*websitev1.Website] {
	return &reconcilers.ResourceReconciler[*websitev1.Website]{
		Name: "Function",
		Type: &websitev1.Website{}, // no longer needed
		Reconciler: reconcilers.Sequence[*websitev1.Website]{
			FunctionTargetImageReconciler(c),
			FunctionChildImageReconciler(c),
		},

		Config: c,
	}
}

// endregion

func FunctionTargetImageReconciler(reconcilers.Config) reconcilers.SubReconciler[*websitev1.Website] {
	return RenderReconciler()
}

// region migration-child
func FunctionChildImageReconciler(reconcilers.Config) reconcilers.SubReconciler[*websitev1.Website] {
	return &reconcilers.ChildReconciler[*websitev1.Website, *corev1.ConfigMap, *corev1.ConfigMapList]{
		Name: "ChildImage",
		DesiredChild: func(_ context.Context, parent *websitev1.Website) (*corev1.ConfigMap, error) {
			return &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: parent.Namespace, Name: parent.Name},
				Data:       map[string]string{"image": parent.Spec.Image},
			}, nil
		},
		MergeBeforeUpdate: func(actual, desired *corev1.ConfigMap) {
			actual.Labels = desired.Labels
			actual.Data = desired.Data
		},
		ReflectChildStatusOnParent: func(ctx context.Context, site *websitev1.Website, _ *corev1.ConfigMap, err error) {
			if err != nil { // the name is in use, or the API server rejects the object
				site.Status.ConditionManager(ctx).MarkFalse(
					websitev1.ConditionContentReady, string(apierrs.ReasonForError(err)), "%s", err,
				)
			}
		},
		Sanitize: func(child *corev1.ConfigMap) any { return child.Data },
	}
}

// endregion

func Example_migrated() {
	site := newSite()
	if _, err := FunctionReconciler(newCluster(site)).Reconcile(context.Background(), requestFor(site)); err != nil {
		fmt.Println(err)
	}
	// Output:
	// event: Normal Created: Created ConfigMap "bakery"
	// event: Normal StatusUpdated: Updated status
}

func Example_migratedObjectManager() {
	child := &reconcilers.ChildReconciler[*websitev1.Website, *corev1.ConfigMap, *corev1.ConfigMapList]{
		DesiredChild: func(_ context.Context, site *websitev1.Website) (*corev1.ConfigMap, error) {
			return desiredConfigMap(site), nil
		},
		ReflectChildStatusOnParent: func(ctx context.Context, site *websitev1.Website, _ *corev1.ConfigMap, err error) {
			if err != nil { // the name is in use, or the API server rejects the object
				site.Status.ConditionManager(ctx).MarkFalse(
					websitev1.ConditionContentReady, string(apierrs.ReasonForError(err)), "%s", err,
				)
			}
		},
		// region migration-object-manager
		ChildObjectManager: &reconcilers.UpdatingObjectManager[*corev1.ConfigMap]{
			MergeBeforeUpdate: func(actual, desired *corev1.ConfigMap) { actual.Data = desired.Data },
			TrackDesired:      true,
		},
		// endregion
	}
	reconcileOnce(newCluster(newSite()), child)
	// Output:
	// event: Normal Created: Created ConfigMap "bakery"
}

func Example_migratedSemanticEquals() {
	manager := &reconcilers.UpdatingObjectManager[*corev1.Service]{
		// region migration-semantic-equals
		HarmonizeImmutableFields: func(current, desired *corev1.Service) {
			if desired.Spec.SessionAffinity == "" { // any current value is acceptable
				desired.Spec.SessionAffinity = current.Spec.SessionAffinity
			}
		},
		MergeBeforeUpdate: func(current, desired *corev1.Service) {
			current.Spec.Ports = desired.Spec.Ports
			current.Spec.SessionAffinity = desired.Spec.SessionAffinity
		},
		// endregion
	}
	reconcileOnce(newCluster(newSite()), &reconcilers.SyncReconciler[*websitev1.Website]{
		Sync: func(ctx context.Context, site *websitev1.Website) error {
			actual := &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", CreationTimestamp: metav1.Unix(1, 0)},
				Spec:       corev1.ServiceSpec{SessionAffinity: corev1.ServiceAffinityClientIP},
			}
			stored, err := manager.Manage(ctx, site, actual, &corev1.Service{ObjectMeta: actual.ObjectMeta})
			fmt.Println("nothing is written:", stored == actual)
			return err
		},
	})
	// Output:
	// nothing is written: true
}

// region migration-aggregate
func SettingsReconciler(
	c reconcilers.Config, derive reconcilers.SubReconciler[*corev1.ConfigMap],
) *reconcilers.AggregateReconciler[*corev1.ConfigMap] {
	return &reconcilers.AggregateReconciler[*corev1.ConfigMap]{
		Name:       "Settings",
		Request:    reconcilers.Request{NamespacedName: client.ObjectKey{Namespace: "default", Name: "settings"}},
		Reconciler: derive,
		DesiredResource: func(ctx context.Context, resource *corev1.ConfigMap) (*corev1.ConfigMap, error) {
			resource.Data = renderedStasher.RetrieveOrEmpty(ctx)
			return resource, nil
		},
		MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) { current.Data = desired.Data },
		Sanitize:          func(resource *corev1.ConfigMap) any { return resource.Data },
		Config:            c,
	}
}

// endregion

func Example_migratedAggregate() {
	r := SettingsReconciler(newCluster(), &reconcilers.SyncReconciler[*corev1.ConfigMap]{
		Sync: func(ctx context.Context, _ *corev1.ConfigMap) error {
			renderedStasher.Store(ctx, map[string]string{"theme": "paper"})
			return nil
		},
	})
	if _, err := r.Reconcile(context.Background(), r.Request); err != nil {
		fmt.Println(err)
	}
	// Output:
	// event: Normal Created: Created ConfigMap "settings"
}
