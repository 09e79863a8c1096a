// SPDX-License-Identifier: Apache-2.0

// Package planning marks the contexts with which a plan calls set-up functions and reconcilers.
package planning

import "context"

type key struct{}

// With returns a context of a plan. The function receives what reconcilers announce.
func With(ctx context.Context, announce func(text string)) context.Context {
	return context.WithValue(ctx, key{}, announce)
}

// Announce passes a text to the plan that ctx belongs to. It returns false if there is none.
func Announce(ctx context.Context, text string) bool {
	announce, ok := ctx.Value(key{}).(func(string))
	if ok {
		announce(text)
	}
	return ok
}

// Is reports whether ctx belongs to a plan.
func Is(ctx context.Context) bool {
	_, ok := ctx.Value(key{}).(func(string))
	return ok
}
