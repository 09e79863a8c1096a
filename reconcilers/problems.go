// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"

	"trueup.dev/internal/setupcheck"
)

// invalid is the error of Validate methods. Its text is that of the first problem; all of them are listed by set-up,
// and available to [errors.Is] and [errors.As].
type invalid struct {
	problems []error
}

func (e *invalid) Error() string   { return e.problems[0].Error() }
func (e *invalid) Unwrap() []error { return e.problems }

// problems collects what is wrong with a reconciler.
type problems []error

func (p *problems) add(format string, args ...any) {
	*p = append(*p, fmt.Errorf(format, args...))
}

// addHint is add with advice that follows the problem where set-up lists all problems. The text of the problem itself
// is part of the API.
func (p *problems) addHint(hint, format string, args ...any) {
	*p = append(*p, &hinted{error: fmt.Errorf(format, args...), hint: hint})
}

// hinted is a problem with advice on what to write.
type hinted struct {
	error
	hint string
}

func (h *hinted) Unwrap() error { return h.error }

// nested validates a part of a reconciler when ctx asks for recursion, and adds each of its problems behind prefix.
// When the tree is about to be set up, a part whose type is not of this module is validated after its set-up.
func (p *problems) nested(ctx context.Context, part any, prefix string, args ...any) {
	ctx, validator := setupcheck.Part(ctx, part, prefix, args...)
	if validator == nil {
		return
	}
	if err := validator.Validate(ctx); err != nil {
		p.behind(fmt.Sprintf(prefix, args...), err)
	}
}

// behind adds each problem of a part behind prefix.
func (p *problems) behind(prefix string, err error) {
	below := []error{err}
	if list := (*invalid)(nil); errors.As(err, &list) {
		below = list.problems
	}
	for _, problem := range below {
		p.add("%s: %w", prefix, problem)
	}
}

// kind adds what keeps obj from standing for a kind of objects.
func (p *problems) kind(reconciler, field string, obj runtime.Object) {
	if isNil(obj) {
		p.add("%s must define %s", reconciler, field)
		return
	}
	if _, ok := obj.(runtime.Unstructured); ok && obj.GetObjectKind().GroupVersionKind().Empty() {
		p.add("%s must define %s with apiVersion and kind", reconciler, field)
	}
}

// listOf adds a problem when list is a list of other objects than item.
func (p *problems) listOf(reconciler, field string, list, item runtime.Object) {
	if isNil(list) || isNil(item) {
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
		p.add("%s must define %s that lists %s, %s lists %s", reconciler, field, want, reflect.TypeOf(list).Elem(), listed)
	}
}

func (p *problems) err() error {
	if len(*p) == 0 {
		return nil
	}
	return &invalid{problems: *p}
}

// everyProblem turns the error of a Validate method into one whose text lists every problem, a line each, with advice.
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

// validateRest validates the parts of a tree that could not be before they were set up, and returns an error that lists
// every problem.
func validateRest(pass *setupcheck.Pass) error {
	problems := problems{}
	for _, problem := range pass.Rest() {
		problems.behind(problem.Prefix, problem.Err)
	}
	return everyProblem(problems.err())
}
