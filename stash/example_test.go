// SPDX-License-Identifier: Apache-2.0

package stash_test

import (
	"context"
	"fmt"

	"trueup.dev/stash"
)

type theme struct {
	Color string
}

var themeStasher = stash.New[*theme]("theme")

// A value that one step of a reconciler looks up is used by a later one.
func Example() {
	lookUpTheme := func(ctx context.Context) {
		themeStasher.Store(ctx, &theme{Color: "teal"})
	}
	renderPage := func(ctx context.Context) {
		fmt.Println("rendering in", themeStasher.RetrieveOrDie(ctx).Color)
	}

	// done by the root reconciler, for every request
	ctx := stash.WithContext(context.Background())

	lookUpTheme(ctx)
	renderPage(ctx)
	// Output: rendering in teal
}

func ExampleNew() {
	attempts := stash.New[int]("attempts")
	ctx := stash.WithContext(context.Background())

	fmt.Println(attempts.Key(), attempts.Has(ctx), attempts.RetrieveOrEmpty(ctx))

	attempts.Store(ctx, 2)
	fmt.Println(attempts.Key(), attempts.Has(ctx), attempts.RetrieveOrDie(ctx))

	fmt.Println("cleared", attempts.Clear(ctx))
	_, err := attempts.RetrieveOrError(ctx)
	fmt.Println(err)
	// Output:
	// attempts false 0
	// attempts true 2
	// cleared 2
	// value not found in stash: nothing is stored under "attempts", store it in a reconciler that runs before
}

func ExampleStasher() {
	ctx := stash.WithContext(context.Background())
	stash.StoreValue(ctx, "theme", "not a theme")

	// Another stasher stored a value of another type under the same key.
	_, err := themeStasher.RetrieveOrError(ctx)
	fmt.Println(err)
	// Output: value found in stash is not of an assignable type: "theme" holds string, not *stash_test.theme
}

func ExampleWithContext() {
	outer := stash.WithContext(context.Background())
	stash.StoreValue(outer, "color", "teal")

	// a nested stash starts empty and hides the one around it
	inner := stash.WithContext(outer)
	fmt.Println(stash.HasValue(outer, "color"), stash.HasValue(inner, "color"))
	// Output: true false
}

func ExampleStoreValue() {
	ctx := stash.WithContext(context.Background())
	stash.StoreValue(ctx, "color", "teal")
	fmt.Println(stash.RetrieveValue(ctx, "color"))
	// Output: teal
}

func ExampleRetrieveValue() {
	ctx := stash.WithContext(context.Background())
	fmt.Println(stash.RetrieveValue(ctx, "never stored"))
	// Output: <nil>
}

func ExampleHasValue() {
	ctx := stash.WithContext(context.Background())
	stash.StoreValue(ctx, "color", nil)
	fmt.Println(stash.HasValue(ctx, "color"), stash.HasValue(ctx, "size"))
	// Output: true false
}

func ExampleClearValue() {
	ctx := stash.WithContext(context.Background())
	stash.StoreValue(ctx, "color", "teal")
	fmt.Println(stash.ClearValue(ctx, "color"), stash.HasValue(ctx, "color"))
	// Output: teal false
}
