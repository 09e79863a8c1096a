// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	policyv1 "k8s.io/api/policy/v1"

	databasev1 "trueup.dev/examples/database/api/v1"
	"trueup.dev/examples/database/internal/manifest"
	"trueup.dev/reconcilers"
)

// DisruptionBudgetReconciler manages the PodDisruptionBudget. A single server must have none, because its node could
// not be drained. An IfThen around this step would also create it, but never delete it.
func DisruptionBudgetReconciler() reconcilers.SubReconciler[*Database] {
	type (
		budget  = *policyv1.PodDisruptionBudget
		budgets = *policyv1.PodDisruptionBudgetList
	)
	return &reconcilers.ChildReconciler[*Database, budget, budgets]{
		Name: "DisruptionBudget",
		DesiredChild: func(_ context.Context, db *Database) (budget, error) {
			if db.Spec.Replicas == nil || *db.Spec.Replicas < 2 {
				return nil, nil // none; an existing one is deleted
			}
			return manifest.DisruptionBudget(db), nil
		},
		ChildObjectManager:                  apply[budget](),
		ReflectChildStatusOnParentWithError: reflectOn[budget](databasev1.ConditionDisruptionBudgetReady, nil),
	}
}
