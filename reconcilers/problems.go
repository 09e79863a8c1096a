// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"

	"trueup.dev/internal/engine/setupcheck"
	"trueup.dev/internal/objects/nilcheck"
)

// invalid is the error that Validate methods return. Its text is the text of the first problem. Setup lists all
// problems. [errors.Is] and [errors.As] find all of them.
type invalid struct {
	problems []error
}

func (e *invalid) Error() string   { return e.problems[0].Error() }
func (e *invalid) Unwrap() []error { return e.problems }

// problems collects the mistakes in a reconciler.
type problems []error

func (p *problems) add(format string, args ...any) {
	*p = append(*p, fmt.Errorf(format, args...))
}

// addHint adds a problem and a hint. Setup prints the hint after the problem. The text of the problem is part of the
// API and stays unchanged.
func (p *problems) addHint(hint, format string, args ...any) {
	*p = append(*p, &hinted{error: fmt.Errorf(format, args...), hint: hint})
}

// hinted is a problem with a hint.
type hinted struct {
	error
	hint string
}

func (h *hinted) Unwrap() error { return h.error }

// nested validates a part of a reconciler if ctx requests recursion. It adds each problem with a prefix. During setup,
// a part whose type is not in this module is validated after its own setup.
func (p *problems) nested(ctx context.Context, part any, prefix string, args ...any) {
	ctx, validator := setupcheck.Part(ctx, part, prefix, args...)
	if validator == nil {
		return
	}
	if err := validator.Validate(ctx); err != nil {
		p.addPrefixed(fmt.Sprintf(prefix, args...), err)
	}
}

// addPrefixed adds each problem of a part with a prefix.
func (p *problems) addPrefixed(prefix string, err error) {
	below := []error{err}
	if list := (*invalid)(nil); errors.As(err, &list) {
		below = list.problems
	}
	for _, problem := range below {
		p.add("%s: %w", prefix, problem)
	}
}

// withoutConfigKey holds the label of the root if it has no config.
type withoutConfigKey struct{}

// requests adds a problem if a reconciler that makes requests has no config to make them with. ofResource reports
// whether the requests are about the reconciled resource, for which a [WithConfig] does not help.
func (p *problems) requests(ctx context.Context, reconciler string, ofResource bool) {
	root, without := ctx.Value(withoutConfigKey{}).(string)
	if without && (ofResource || ctx.Value(claimConfigKey{}) == nil) {
		p.add("%s must define Config: %s makes requests", root, reconciler)
	}
}

// kind adds a problem if obj does not define a kind.
func (p *problems) kind(reconciler, field string, obj runtime.Object) {
	if nilcheck.IsNilPointer(obj) {
		p.add("%s must define %s", reconciler, field)
		return
	}
	if _, ok := obj.(runtime.Unstructured); ok && obj.GetObjectKind().GroupVersionKind().Empty() {
		p.add("%s must define %s with apiVersion and kind", reconciler, field)
	}
}

// listOf adds a problem if list is not a list of items of the type of item.
func (p *problems) listOf(reconciler, field string, list, item runtime.Object) {
	if nilcheck.IsNilPointer(list) || nilcheck.IsNilPointer(item) {
		return
	}
	items, ok := reflect.TypeOf(list).Elem().FieldByName("Items")
	if !ok || items.Type.Kind() != reflect.Slice {
		return
	}
	listed := items.Type.Elem()
	if listed.Kind() == reflect.Pointer {
		listed = listed.Elem()
	}
	if want := reflect.TypeOf(item).Elem(); listed != want && listed.Kind() == reflect.Struct {
		p.add("%s must define %s that lists %s, got %s, which lists %s",
			reconciler, field, want, reflect.TypeOf(list).Elem(), listed)
	}
}

func (p *problems) err() error {
	if len(*p) == 0 {
		return nil
	}
	return &invalid{problems: *p}
}

// everyProblem returns an error whose text lists every problem and its hint, one per line.
func everyProblem(err error) error {
	list := (*invalid)(nil)
	if !errors.As(err, &list) {
		return err
	}
	every := make([]error, len(list.problems))
	for i, problem := range list.problems {
		every[i] = problem
		if advised := (*hinted)(nil); errors.As(problem, &advised) {
			every[i] = fmt.Errorf("%w: %s", problem, advised.hint)
		}
	}
	if len(every) == 1 {
		return every[0]
	}
	return errors.Join(every...)
}

// validateRest validates the parts of a tree that must be set up first. It returns an error that lists every problem.
func validateRest(pass *setupcheck.Pass) error {
	problems := problems{}
	for _, problem := range pass.Rest() {
		problems.addPrefixed(problem.Prefix, problem.Err)
	}
	return everyProblem(problems.err())
}
