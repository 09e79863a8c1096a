// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/graph"
	"trueup.dev/internal/engine/step"
	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/stash"
)

var _ subReconciler = Sequence[client.Object](nil)

// Sequence runs subreconcilers in order and combines their results with [AggregateResults]. It stops at the first
// error and returns the result and the error of the subreconciler that failed.
//
// A Sequence can be used as a value or as a pointer. It has no state.
type Sequence[Type client.Object] []SubReconciler[Type]

// SetupWithManager sets up every subreconciler, in order.
func (r Sequence[T]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	return setUp(ctx, mgr, bldr, r)
}

// Validate validates every subreconciler if ctx requests recursion, see [validation.WithRecursive].
func (r Sequence[T]) Validate(ctx context.Context) error { return validate(ctx, r) }

// DescribeTo implements [graph.Describer].
func (r Sequence[T]) DescribeTo(n *graph.Node) { describeTo(n, r) }

func (r Sequence[T]) describe(d *description) {
	describeEach(d, "Sequence", r)
}

// Reconcile runs the subreconcilers.
func (r Sequence[T]) Reconcile(ctx context.Context, resource T) (Result, error) {
	aggregate := Result{}
	waits := waitsFrom(ctx)
	for i, reconciler := range r {
		if err := interrupted(ctx); err != nil {
			return aggregate, err
		}
		before := waits.begin()
		result, err := step.Run(ctx, step.Node{Name: strconv.Itoa(i)}, resource, reconciler.Reconcile)
		waits.end(before, err)
		if err != nil {
			return result, err
		}
		aggregate = AggregateResults(aggregate, result)
	}
	return aggregate, nil
}

var _ subReconciler = Always[client.Object](nil)

// Always runs all subreconcilers in order, even if one of them fails. Use it for reconcilers that do not depend on
// each other. Use [Sequence] if they do.
//
// Results are combined with [AggregateResults], also when there are errors. The returned error joins the errors of all
// subreconcilers. If at least one of them is not quiet, quiet errors are left out, so that a quiet error does not
// silence another error.
//
// An Always can be used as a value or as a pointer. It has no state.
type Always[Type client.Object] []SubReconciler[Type]

// SetupWithManager sets up every subreconciler, in order.
func (r Always[T]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	return setUp(ctx, mgr, bldr, r)
}

// Validate validates every subreconciler if ctx requests recursion, see [validation.WithRecursive].
func (r Always[T]) Validate(ctx context.Context) error { return validate(ctx, r) }

// DescribeTo implements [graph.Describer].
func (r Always[T]) DescribeTo(n *graph.Node) { describeTo(n, r) }

func (r Always[T]) describe(d *description) {
	describeEach(d, "Always", r)
}

// Reconcile runs the subreconcilers.
func (r Always[T]) Reconcile(ctx context.Context, resource T) (Result, error) {
	aggregate := Result{}
	waits := waitsFrom(ctx)
	errs := []error{}
	for i, reconciler := range r {
		if err := interrupted(ctx); err != nil {
			errs = append(errs, err)
			break
		}
		before := waits.begin()
		result, err := step.Run(ctx, step.Node{Name: strconv.Itoa(i)}, resource, reconciler.Reconcile)
		waits.end(before, err)
		aggregate = AggregateResults(aggregate, result)
		errs = append(errs, err)
	}
	return aggregate, joinErrors(errs...)
}

// describeEach describes a list of reconcilers, which has no name and no step of its own.
func describeEach[T client.Object](d *description, kind string, list []SubReconciler[T]) {
	d.is(kind, "")
	for i, reconciler := range list {
		if !given(reconciler) {
			d.require(false, "must not have a nil %s[%d]", kind, i)
			continue
		}
		index := strconv.Itoa(i)
		d.nests(nested{
			role: index, field: kind + "[" + index + "]", step: true, reconciler: reconciler, setUpIn: logNamed(index),
		})
	}
}

// interrupted returns the error that stops a list of reconcilers between two steps after the context has ended. On a
// shutdown the error is quiet. It is not quiet if a deadline was exceeded or user code canceled the context.
func interrupted(ctx context.Context) error {
	switch {
	case ctx.Err() == nil:
		return nil
	case isShutdown(ctx):
		return errors.Join(ErrQuiet, ErrSkipStatusUpdate, context.Cause(ctx))
	default:
		return context.Cause(ctx)
	}
}

// isShutdown reports whether the context of the whole request was canceled, not only a context derived from it.
func isShutdown(ctx context.Context) bool {
	s := scopeFrom(ctx)
	return errors.Is(s.requestErr(ctx), context.Canceled)
}

var _ subReconciler = (*IfThen[client.Object])(nil)

// IfThen runs one of two subreconcilers, depending on a condition on the resource, and returns its result and error.
// Both are set up, because the condition may change at any time.
//
// In a step of [Steps] that is removed, also because the resource is being deleted, both run: the one that the
// condition does not choose may have made children before. The chosen one runs first. Their results and errors are
// combined as by [Always].
type IfThen[Type client.Object] struct {
	// Name identifies this reconciler in logs. Defaults to `IfThen`.
	Name string

	// Setup registers watches and indexes that If needs. It is called before Then and Else are set up. Optional.
	Setup func(ctx context.Context, mgr Manager, bldr *Builder) error

	// If reports whether to run Then. Required.
	If func(ctx context.Context, resource Type) bool

	// Then runs if If returns true. Required.
	Then SubReconciler[Type]

	// Else runs if If returns false. Optional.
	Else SubReconciler[Type]

	lazyInit sync.Once
}

func (r *IfThen[T]) init() {
	r.lazyInit.Do(func() {
		if r.Name == "" {
			r.Name = "IfThen"
		}
	})
}

// SetupWithManager validates the reconciler, calls Setup and sets up Then and Else.
func (r *IfThen[T]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	return setUp(ctx, mgr, bldr, r)
}

// Validate checks the required fields. If ctx requests recursion, it also validates Then and Else.
func (r *IfThen[T]) Validate(ctx context.Context) error { return validate(ctx, r) }

// DescribeTo implements [graph.Describer].
func (r *IfThen[T]) DescribeTo(n *graph.Node) { describeTo(n, r) }

func (r *IfThen[T]) describe(d *description) {
	r.init()
	d.is("IfThen", r.Name)
	d.require(r.If != nil, "must implement If")
	d.require(given(r.Then), "must implement Then")
	d.setsUp(r.Setup)
	branch := func(then bool) func(context.Context) context.Context {
		return func(ctx context.Context) context.Context { return onBranch(ctx, r, then) }
	}
	d.nests(nested{role: "Then", step: true, reconciler: r.Then, inside: branch(true)})
	d.nests(nested{role: "Else", step: true, reconciler: r.Else, inside: branch(false)})
}

// Reconcile runs Then or Else.
func (r *IfThen[T]) Reconcile(ctx context.Context, resource T) (Result, error) {
	r.init()
	return step.Run(ctx, step.Node{Name: r.Name}, resource, func(ctx context.Context, resource T) (Result, error) {
		then := r.If(ctx, resource)
		if run := stepRunFrom(ctx); run == nil || !run.removes {
			return r.run(ctx, resource, then)
		}
		waits := waitsFrom(ctx)
		aggregate, errs := Result{}, []error{}
		for _, branch := range []bool{then, !then} {
			before := waits.begin()
			result, err := r.run(ctx, resource, branch)
			waits.end(before, err)
			aggregate, errs = AggregateResults(aggregate, result), append(errs, err)
		}
		return aggregate, joinErrors(errs...)
	})
}

// run runs Then or Else.
func (r *IfThen[T]) run(ctx context.Context, resource T, then bool) (Result, error) {
	switch {
	case then:
		return step.Run(ctx, step.Node{Name: "Then"}, resource, r.Then.Reconcile)
	case r.Else != nil:
		return step.Run(ctx, step.Node{Name: "Else"}, resource, r.Else.Reconcile)
	}
	return Result{}, nil
}

var _ subReconciler = (*TryCatch[client.Object])(nil)

// TryCatch handles the error of a subreconciler with a function, and always runs another subreconciler afterwards.
type TryCatch[Type client.Object] struct {
	// Name identifies this reconciler in logs. Defaults to `TryCatch`.
	Name string

	// Setup registers watches and indexes. It is called before Try and Finally are set up. Optional.
	Setup func(ctx context.Context, mgr Manager, bldr *Builder) error

	// Try runs first. Required.
	Try SubReconciler[Type]

	// Catch is called with the result and error of Try, also if the error is nil. It returns the result and error to
	// use. Optional.
	Catch func(ctx context.Context, resource Type, result Result, err error) (Result, error)

	// Finally always runs after Catch, to clean up after Try. Its result is combined with that of Try and Catch, see
	// [AggregateResults]: the earliest requeue is used. If Finally fails, its error replaces the previous error.
	// Optional.
	Finally SubReconciler[Type]

	lazyInit sync.Once
}

func (r *TryCatch[T]) init() {
	r.lazyInit.Do(func() {
		if r.Name == "" {
			r.Name = "TryCatch"
		}
	})
}

// SetupWithManager validates the reconciler, calls Setup and sets up Try and Finally.
func (r *TryCatch[T]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	return setUp(ctx, mgr, bldr, r)
}

// Validate checks the required fields. If ctx requests recursion, it also validates Try and Finally.
func (r *TryCatch[T]) Validate(ctx context.Context) error { return validate(ctx, r) }

// DescribeTo implements [graph.Describer].
func (r *TryCatch[T]) DescribeTo(n *graph.Node) { describeTo(n, r) }

func (r *TryCatch[T]) describe(d *description) {
	r.init()
	d.is("TryCatch", r.Name)
	d.require(given(r.Try), "must implement Try")
	d.setsUp(r.Setup)
	d.nests(nested{role: "Try", step: true, reconciler: r.Try})
	d.nests(nested{role: "Finally", step: true, reconciler: r.Finally})
}

// Reconcile runs Try, Catch and Finally.
func (r *TryCatch[T]) Reconcile(ctx context.Context, resource T) (Result, error) {
	r.init()
	return step.Run(ctx, step.Node{Name: r.Name}, resource, r.reconcile)
}

func (r *TryCatch[T]) reconcile(ctx context.Context, resource T) (Result, error) {
	result, err := step.Run(ctx, step.Node{Name: "Try"}, resource, r.Try.Reconcile)
	if r.Catch != nil {
		result, err = r.Catch(ctx, resource, result, err)
	}
	if r.Finally == nil {
		return result, err
	}
	finally, finallyErr := step.Run(ctx, step.Node{Name: "Finally"}, resource, r.Finally.Reconcile)
	if finallyErr != nil {
		err = finallyErr
	}
	return AggregateResults(result, finally), err
}

var _ subReconciler = (*While[client.Object])(nil)

// While runs a subreconciler repeatedly while a condition is true. Do not use it to wait for external state: the loop
// occupies a worker of the controller until it ends. To wait, return a [Result] with RequeueAfter, or watch the object.
//
// Results are combined with [AggregateResults]. The loop ends at the first error and when the context ends.
type While[Type client.Object] struct {
	// Name identifies this reconciler in logs. Defaults to `While`.
	Name string

	// Setup registers watches and indexes that Condition needs. It is called before Reconciler is set up. Optional.
	Setup func(ctx context.Context, mgr Manager, bldr *Builder) error

	// Condition reports whether to run Reconciler again. See [RetrieveIteration]. Required.
	Condition func(ctx context.Context, resource Type) bool

	// Reconciler runs in each iteration. Required.
	Reconciler SubReconciler[Type]

	// MaxIterations limits the number of iterations. A loop that exceeds it returns [ErrMaxIterations]. Defaults to
	// 100; 0 means no limit.
	MaxIterations *int

	lazyInit sync.Once
}

// ErrMaxIterations is the error of a [While] whose condition is still true after the last iteration.
type ErrMaxIterations struct {
	// Iterations is the number of completed iterations.
	Iterations int
}

func (err *ErrMaxIterations) Error() string {
	return fmt.Sprintf("exceeded max iterations: %d", err.Iterations)
}

const defaultMaxIterations = 100

func (r *While[T]) init() {
	r.lazyInit.Do(func() {
		if r.Name == "" {
			r.Name = "While"
		}
		if r.MaxIterations == nil {
			r.MaxIterations = new(defaultMaxIterations)
		}
	})
}

// SetupWithManager validates the reconciler, calls Setup and sets up Reconciler.
func (r *While[T]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	return setUp(ctx, mgr, bldr, r)
}

// Validate checks the required fields. If ctx requests recursion, it also validates Reconciler.
func (r *While[T]) Validate(ctx context.Context) error { return validate(ctx, r) }

// DescribeTo implements [graph.Describer].
func (r *While[T]) DescribeTo(n *graph.Node) { describeTo(n, r) }

func (r *While[T]) describe(d *description) {
	r.init()
	d.is("While", r.Name)
	d.require(r.Condition != nil, "must implement Condition")
	d.require(given(r.Reconciler), "must implement Reconciler")
	d.setsUp(r.Setup)
	d.nests(nested{role: "*", field: "Reconciler", step: true, reconciler: r.Reconciler})
}

// Reconcile runs the loop.
func (r *While[T]) Reconcile(ctx context.Context, resource T) (Result, error) {
	r.init()
	return step.Run(ctx, step.Node{Name: r.Name}, resource, r.reconcile)
}

func (r *While[T]) reconcile(ctx context.Context, resource T) (Result, error) {
	aggregate := Result{}
	waits := waitsFrom(ctx)
	for i := 0; ; i++ {
		if err := interrupted(ctx); err != nil {
			return aggregate, err
		}
		if limit := *r.MaxIterations; limit != 0 && i >= limit {
			return aggregate, &ErrMaxIterations{Iterations: i}
		}
		ctx := context.WithValue(ctx, iterationKey{}, i)
		if !r.Condition(ctx, resource) {
			return aggregate, nil
		}
		before := waits.begin()
		result, err := step.Run(ctx, step.Node{Name: strconv.Itoa(i), Item: true}, resource, r.Reconciler.Reconcile)
		waits.end(before, err)
		aggregate = AggregateResults(aggregate, result)
		if err != nil {
			return aggregate, err
		}
	}
}

type iterationKey struct{}

// RetrieveIteration returns the zero-based iteration of the innermost [While], or -1 outside of a loop.
func RetrieveIteration(ctx context.Context) int {
	if i, ok := ctx.Value(iterationKey{}).(int); ok {
		return i
	}
	return -1
}

var _ subReconciler = (*ForEach[client.Object, any])(nil)

// ForEach runs a subreconciler once for each item of a list. The item is in the stash while the subreconciler runs:
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
