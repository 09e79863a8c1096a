// SPDX-License-Identifier: Apache-2.0

package time

import (
	"context"
	"time"
)

// RetrieveTime returns the time stashed on the context.
//
// Deprecated: use [RetrieveNow].
//
//go:fix inline
func RetrieveTime(ctx context.Context) time.Time {
	return RetrieveNow(ctx)
}
