// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	databasev1 "trueup.dev/examples/database/api/v1"
	"trueup.dev/examples/database/internal/manifest"
	"trueup.dev/reconcilers"
)

// PodsServiceReconciler manages the Service that gives each server a DNS name.
func PodsServiceReconciler() reconcilers.SubReconciler[*Database] {
	return serviceReconciler("PodsService", manifest.PodsService)
}

// ServiceReconciler manages the Service that clients connect to.
func ServiceReconciler() reconcilers.SubReconciler[*Database] {
	return serviceReconciler("Service", manifest.Service)
}

func serviceReconciler(name string, desired func(*Database) *corev1.Service) reconcilers.SubReconciler[*Database] {
	return &reconcilers.ChildReconciler[*Database, *corev1.Service, *corev1.ServiceList]{
		Name: name,
		DesiredChild: func(_ context.Context, db *Database) (*corev1.Service, error) {
			return desired(db), nil
		},
		// A Database owns two Services. Without OurChild each step would manage both. The name distinguishes them:
		// unlike a label, it cannot be changed.
		OurChild: func(db *Database, child *corev1.Service) bool {
			return child.Name == desired(db).Name
		},
		// An apply would leave a port that another client has added or changed beside the own one.
		MergeBeforeUpdate: func(current, desired *corev1.Service) {
			current.Labels = reconcilers.MergeMaps(current.Labels, desired.Labels)
			current.Spec.Selector, current.Spec.Ports = desired.Spec.Selector, desired.Spec.Ports
			current.Spec.PublishNotReadyAddresses = desired.Spec.PublishNotReadyAddresses
		},
		ReflectChildStatusOnParentWithError: reflectOn(databasev1.ConditionServiceReady,
			func(_ context.Context, db *Database, _ *corev1.Service) error {
				db.Status.Endpoint = manifest.Endpoint(db)
				return nil
			}),
	}
}
