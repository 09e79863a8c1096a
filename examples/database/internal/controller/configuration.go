// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	databasev1 "trueup.dev/examples/database/api/v1"
	"trueup.dev/examples/database/internal/manifest"
	"trueup.dev/reconcilers"
)

// ConfigurationReconciler manages the ConfigMap with postgresql.conf.
func ConfigurationReconciler() reconcilers.SubReconciler[*Database] {
	return &reconcilers.ChildReconciler[*Database, *corev1.ConfigMap, *corev1.ConfigMapList]{
		Name: "Configuration",
		DesiredChild: func(_ context.Context, db *Database) (*corev1.ConfigMap, error) {
			return manifest.Configuration(db), nil
		},
		ChildObjectManager:                  apply[*corev1.ConfigMap](),
		ReflectChildStatusOnParentWithError: reflectOn[*corev1.ConfigMap](databasev1.ConditionConfigurationReady, nil),
	}
}
