// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"

	databasev1 "trueup.dev/examples/database/api/v1"
	"trueup.dev/examples/database/internal/manifest"
	"trueup.dev/readiness"
	"trueup.dev/reconcilers"
)

// StatefulSetReconciler manages the servers.
func StatefulSetReconciler() reconcilers.SubReconciler[*Database] {
	return &reconcilers.ChildReconciler[*Database, *appsv1.StatefulSet, *appsv1.StatefulSetList]{
		Name: "StatefulSet",
		DesiredChild: func(ctx context.Context, db *Database) (*appsv1.StatefulSet, error) {
			hash := manifest.Hash(manifest.Configuration(db).Data, certificateStash.RetrieveOrEmpty(ctx))
			return manifest.StatefulSet(db, hash), nil
		},
		// The API server rejects changes of these. The condition explains this to the author.
		HarmonizeImmutableFields: func(current, desired *appsv1.StatefulSet) {
			desired.Spec.Selector, desired.Spec.ServiceName = current.Spec.Selector, current.Spec.ServiceName
			desired.Spec.PodManagementPolicy = current.Spec.PodManagementPolicy
			desired.Spec.VolumeClaimTemplates = current.Spec.VolumeClaimTemplates
		},
		MergeBeforeUpdate: func(current, desired *appsv1.StatefulSet) {
			current.Labels = reconcilers.MergeMaps(current.Labels, desired.Labels)
			// kubectl rollout restart sets an annotation here, which must stay.
			annotations := reconcilers.MergeMaps(current.Spec.Template.Annotations, desired.Spec.Template.Annotations)
			current.Spec = desired.Spec
			current.Spec.Template.Annotations = annotations
		},
		ReflectChildStatusOnParentWithError: reflectOn(databasev1.ConditionStatefulSetReady, reflectServers),
	}
}

func reflectServers(ctx context.Context, db *Database, child *appsv1.StatefulSet) error {
	db.Status.ReadyReplicas = child.Status.ReadyReplicas
	conditions := db.Status.ConditionManager(ctx)
	size := child.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage()
	switch {
	case size.Cmp(db.Spec.Storage) != 0:
		conditions.MarkFalse(databasev1.ConditionStatefulSetReady, "StorageChangeRefused",
			"the volumes have %s, and the volumes of a StatefulSet cannot change to %s", size, &db.Spec.Storage)
	case !readiness.Of(child).IsReady():
		conditions.MarkUnknown(databasev1.ConditionStatefulSetReady, "RollingOut",
			"waiting for servers with the current specification")
	default:
		conditions.MarkTrue(databasev1.ConditionStatefulSetReady, "RolledOut", "")
	}
	return nil
}
