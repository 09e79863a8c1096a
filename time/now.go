// SPDX-License-Identifier: Apache-2.0

package time

import (
	"context"
	"time"
)

type contextKey struct{}

// StashNow returns a context that carries now, for [RetrieveNow] to return. A
// context that carries a time already is returned unchanged: the first time
// stashed wins, also when it is the zero time.
func StashNow(ctx context.Context, now time.Time) context.Context {
	if _, ok := ctx.Value(contextKey{}).(time.Time); ok {
		return ctx
	}
	return context.WithValue(ctx, contextKey{}, now)
}

// RetrieveNow returns the time stashed on the context, for a reconciler the time
// at which the request started. Without a stashed time it returns [time.Now].
func RetrieveNow(ctx context.Context) time.Time {
	if now, ok := ctx.Value(contextKey{}).(time.Time); ok {
		return now
	}
	return time.Now()
}
