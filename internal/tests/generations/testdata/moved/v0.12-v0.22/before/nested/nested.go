// SPDX-License-Identifier: Apache-2.0

// Package nested has one old call in the arguments of another.
package nested

import (
	"context"

	"github.com/vmware-labs/reconciler-runtime/reconcilers"
)

func Same(ctx context.Context) context.Context {
	return reconcilers.StashParentType(ctx, reconcilers.RetrieveParentType(ctx))
}
