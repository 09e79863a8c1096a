// SPDX-License-Identifier: Apache-2.0

package time

import (
	"context"
	"time"

	"trueup.dev/internal/engine/carried"
)

// StashNow returns a context that carries now for [RetrieveNow]. A context that already carries a time is returned
// unchanged: the first stashed time stays, even if it is the zero time.
func StashNow(ctx context.Context, now time.Time) context.Context {
	if _, ok := ctx.Value(carried.NowKey{}).(*time.Time); ok {
		return ctx
	}
	return context.WithValue(ctx, carried.NowKey{}, &now)
}

// RetrieveNow returns the time stashed on the context. In a reconciler it is the time at which the request started.
// Without a stashed time it returns [time.Now].
func RetrieveNow(ctx context.Context) time.Time {
	if now, ok := ctx.Value(carried.NowKey{}).(*time.Time); ok {
		return *now
	}
	return time.Now()
}
