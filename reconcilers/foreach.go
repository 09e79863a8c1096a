// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"reflect"
	"strconv"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/graph"
	"trueup.dev/internal/engine/step"
	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/stash"
)

var _ subReconciler = (*ForEach[client.Object, any])(nil)

// ForEach runs a sub reconciler once for each item of a list. The item is in the stash while the sub reconciler runs:
//
//	cursor := reconcilers.CursorStasher[Item]().RetrieveOrDie(ctx)
//
// Results are combined with [AggregateResults]. The loop ends at the first error and when the context ends. It then
// returns the combined result of the previous items. The result of the item that failed is included if the error uses
// it: a halt and [ErrRetryAfter], which [Retry] and [RateLimit] return.
//
// Reconcilers below that keep state between requests, such as [Retry], [RateLimit], [Periodic] and
// [SuppressTransientErrors], keep it for each item. An item is recognized by its value, or if it is an object, by its
// kind, namespace, name and UID. To run the items that follow an item that fails or is deferred, set Continue of Retry
// and RateLimit.
type ForEach[Type client.Object, Item any] struct {
	// Name identifies this reconciler in logs. Defaults to `ForEach`.
	Name string

	// Setup registers watches and indexes that Items needs. It is called after Reconciler is set up. Optional.
	Setup func(ctx context.Context, mgr Manager, bldr *Builder) error

	// Reconciler runs for each item. Required.
	Reconciler SubReconciler[Type]

	// Items returns the list. It is called once per request. Required.
	Items func(ctx context.Context, resource Type) ([]Item, error)

	lazyInit sync.Once
}

// Cursor is the position of an item in the list of a [ForEach].
type Cursor[I any] struct {
	// Index is the zero-based index of the item.
	Index int
	// Length is the length of the list.
	Length int
	// Item is the item.
	Item I
}

// CursorStasher returns the stasher of the innermost [ForEach] over items of this type. The last cursor stays in the
// stash after the loop.
func CursorStasher[I any]() stash.Stasher[Cursor[I]] {
	return stash.New[Cursor[I]](stash.Key("trueup.dev/reconcilers.Cursor[" + qualifiedName(reflect.TypeFor[I]()) + "]"))
}

// qualifiedName returns a unique name of a type, with its package path.
func qualifiedName(t reflect.Type) string {
	switch {
	case t.PkgPath() != "":
		return t.PkgPath() + "." + t.Name()
	case t.Name() != "":
		return t.Name()
	}
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + qualifiedName(t.Elem())
	case reflect.Slice:
		return "[]" + qualifiedName(t.Elem())
	case reflect.Array:
		return "[" + strconv.Itoa(t.Len()) + "]" + qualifiedName(t.Elem())
	case reflect.Map:
		return "map[" + qualifiedName(t.Key()) + "]" + qualifiedName(t.Elem())
	default:
		return t.String()
	}
}

// loopKey marks the context within a loop over items of this type.
type loopKey[I any] struct{}

// forEachKey holds the [loopItem] of the innermost loop over items.
type forEachKey struct{}

// loopItem is the current item of a loop.
type loopItem struct {
	outside *loopItem
	index   int
	// ids returns what identifies the items of the loop in later requests.
	ids func() []string
}

// itemOf identifies the items of the loops around a reconciler and the iteration of the innermost [While]. It is ""
// outside of loops.
func itemOf(ctx context.Context) string {
	id := ""
	for item, _ := ctx.Value(forEachKey{}).(*loopItem); item != nil; item = item.outside {
		id += item.ids()[item.index]
	}
	if iteration := RetrieveIteration(ctx); iteration >= 0 {
		id += "/" + strconv.Itoa(iteration)
	}
	return id
}

// identifyItems returns a text for each item that distinguishes it from the others, and that is the same in the next
// request, also if the item has another position then.
func identifyItems[I any](items []I) []string {
	ids, equal := make([]string, len(items)), map[string]int{}
	for i := range items {
		id := identifyItem(&items[i])
		equal[id]++
		ids[i] = id + "#" + strconv.Itoa(equal[id])
	}
	return ids
}

func identifyItem[I any](item *I) string {
	for _, form := range []any{*item, item} {
		if obj, ok := form.(client.Object); ok && !nilcheck.IsNilPointer(obj) {
			return typeName(obj) + " " + client.ObjectKeyFromObject(obj).String() + " " + string(obj.GetUID())
		}
	}
	encoded, err := json.Marshal(item)
	if err != nil {
		return "" // only the position distinguishes such items
	}
	sum := sha256.Sum256(encoded) // items may be large
	return string(sum[:])
}

// isRepeated reports whether a reconciler may run several times in one request.
func isRepeated(ctx context.Context) bool {
	return ctx.Value(forEachKey{}) != nil || RetrieveIteration(ctx) >= 0
}

func (r *ForEach[T, I]) init() {
	r.lazyInit.Do(func() {
		if r.Name == "" {
			r.Name = "ForEach"
		}
	})
}

// SetupWithManager validates the reconciler, sets up Reconciler and calls Setup.
func (r *ForEach[T, I]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	return setUp(ctx, mgr, bldr, r)
}

// Validate checks the required fields. If ctx requests recursion, it also validates Reconciler.
func (r *ForEach[T, I]) Validate(ctx context.Context) error { return validate(ctx, r) }

// DescribeTo implements [graph.Describer].
func (r *ForEach[T, I]) DescribeTo(n *graph.Node) { describeTo(n, r) }

func (r *ForEach[T, I]) describe(d *description) {
	r.init()
	d.is("ForEach", r.Name)
	d.require(given(r.Reconciler), "must implement Reconciler")
	d.require(r.Items != nil, "must implement Items")
	d.nests(nested{role: "*", field: "Reconciler", step: true, reconciler: r.Reconciler})
	d.setsUp(r.Setup)
}

// Reconcile runs the loop.
func (r *ForEach[T, I]) Reconcile(ctx context.Context, resource T) (Result, error) {
	r.init()
	return step.Run(ctx, step.Node{Name: r.Name}, resource, r.reconcile)
}

func (r *ForEach[T, I]) reconcile(ctx context.Context, resource T) (Result, error) {
	items, err := r.Items(ctx, resource)
	if err != nil {
		return Result{}, err
	}
	cursors := CursorStasher[I]()
	if inside := ctx.Value(loopKey[I]{}) != nil; inside {
		// The enclosing loop over items of the same type continues with its own item.
		if outer, err := cursors.RetrieveOrError(ctx); err == nil {
			defer cursors.Store(ctx, outer)
		}
	}
	outside, _ := ctx.Value(forEachKey{}).(*loopItem)
	ids := sync.OnceValue(func() []string { return identifyItems(items) })
	ctx = context.WithValue(ctx, loopKey[I]{}, true)
	aggregate := Result{}
	waits := waitsFrom(ctx)
	for i := range items {
		if err := interrupted(ctx); err != nil {
			return aggregate, err
		}
		cursors.Store(ctx, Cursor[I]{Index: i, Length: len(items), Item: items[i]})
		before := waits.begin()
		ctx := context.WithValue(ctx, forEachKey{}, &loopItem{outside: outside, index: i, ids: ids})
		result, err := step.Run(ctx, step.Node{Name: strconv.Itoa(i), Item: true}, resource, r.Reconciler.Reconcile)
		waits.end(before, err)
		if err == nil || hasOwnTime(err) {
			aggregate = AggregateResults(aggregate, result)
		}
		if err != nil {
			return aggregate, err
		}
	}
	return aggregate, nil
}
