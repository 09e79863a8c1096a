// SPDX-License-Identifier: Apache-2.0

package external

import (
	"context"
	"fmt"

	"trueup.dev/internal/engine/planning"
)

// Announce reports whether ctx belongs to a plan, and adds a text to it. Reconcilers call it before an
// effect outside of Kubernetes, which a plan must not have:
//
//	if external.Announce(ctx, "delete bucket %s", name) {
//		return nil
//	}
//	return cloud.DeleteBucket(ctx, name)
func Announce(ctx context.Context, format string, args ...any) bool {
	return planning.Announce(ctx, fmt.Sprintf(format, args...))
}

// InPlan reports whether ctx belongs to a plan. Set-up functions use it to leave out what a plan does not need.
func InPlan(ctx context.Context) bool { return planning.Is(ctx) }
