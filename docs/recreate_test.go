// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"

	"trueup.dev/reconcilers"
)

// region recreate
func MigrationManager() reconcilers.ObjectManager[*batchv1.Job] {
	return &reconcilers.RecreatingObjectManager[*batchv1.Job]{
		Manager: &reconcilers.ApplyingObjectManager[*batchv1.Job]{},
		Fields:  []string{"spec.template"}, // a refused change of another field is reported, as without it
	}
}

// endregion

func Example_recreate() {
	config := newCluster()
	ctx := reconcilers.StashConfig(context.Background(), config)
	fmt.Println(MigrationManager().SetupWithManager(ctx, nil, nil))
	// Output:
	// <nil>
}
