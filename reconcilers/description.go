// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/graph"
	"trueup.dev/internal/engine/registration"
	"trueup.dev/internal/engine/setupcheck"
	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/validation"
)

// subReconciler is what each sub reconciler of this package implements.
type subReconciler interface {
	SubReconciler[client.Object]
	validation.Validator
	graph.Describer
	describer
}

// describer is a reconciler that says once what it consists of. Its methods SetupWithManager, Validate and DescribeTo
// follow from that: they call setUp, validate and describeTo.
type describer interface {
	// describe calls methods of the description. The order of the calls is the order of set-up, of the problems that
	// Validate finds and of the nodes of package graph.
	describe(d *description)
}

// description is what a reconciler consists of.
type description struct {
	name string
	// label identifies the reconciler in messages, for example `Retry "name"`.
	label  string
	setUps []setupFunc
	checks []func(ctx context.Context, problems *problems)
	nodes  []func(n *graph.Node)
}

// setupFunc sets up a part of a reconciler.
type setupFunc func(ctx context.Context, mgr Manager, bldr *Builder) error

// setupable is a [SubReconciler] of any type of resource.
type setupable interface {
	SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error
}

func descriptionOf(r describer) *description {
	d := &description{}
	r.describe(d)
	return d
}

// setUp validates a reconciler and then sets up what it consists of, with its name in the logger.
func setUp(ctx context.Context, mgr Manager, bldr *Builder, r describer) error {
	d := descriptionOf(r)
	if err := d.validate(ctx); err != nil {
		return everyProblem(err)
	}
	if d.name != "" {
		ctx = withLogName(ctx, d.name)
	}
	for _, setUp := range d.setUps {
		if err := setUp(ctx, mgr, bldr); err != nil {
			return err
		}
	}
	return nil
}

// validate returns the problems of a reconciler, and of the reconcilers that it nests if ctx requests recursion.
func validate(ctx context.Context, r describer) error { return descriptionOf(r).validate(ctx) }

func (d *description) validate(ctx context.Context) error {
	problems := problems{}
	for _, check := range d.checks {
		check(ctx, &problems)
	}
	return problems.err()
}

// describeTo adds a reconciler to a tree of package graph. The permissions that the reconciler needs are those of the
// RBAC section in the comment of its type.
func describeTo(n *graph.Node, r describer) {
	d := descriptionOf(r)
	if d.name != "" {
		n.Step(d.name)
	}
	for _, add := range d.nodes {
		add(n)
	}
}

// is sets the type of the reconciler and its name. A reconciler without a name is not a step.
func (d *description) is(kind, name string) {
	d.name, d.label = name, kind
	if name != "" {
		d.label = fmt.Sprintf("%s %q", kind, name)
	}
}

// require adds the problem that the label and the format describe, unless ok.
func (d *description) require(ok bool, format string, args ...any) {
	if !ok {
		d.check(func(_ context.Context, problems *problems) {
			problems.add("%s "+format, append([]any{d.label}, args...)...)
		})
	}
}

// check adds problems that depend on the context.
func (d *description) check(check func(ctx context.Context, problems *problems)) {
	d.checks = append(d.checks, check)
}

// setsUp calls a function during set-up. It does nothing for nil.
func (d *description) setsUp(setUp setupFunc) {
	if setUp != nil {
		d.setUps = append(d.setUps, setUp)
	}
}

// accesses adds what the reconciler itself reads and writes.
func (d *description) accesses(access func(n *graph.Node)) { d.nodes = append(d.nodes, access) }

// nested is a reconciler within another one.
type nested struct {
	// role is its position: the name of a field, or of the step that it runs in.
	role string
	// field names its position in messages. Defaults to role.
	field string
	// step reports whether it runs in a step with the name of its role.
	step       bool
	reconciler setupable
	// inside returns the context in which it is set up and validated. Optional.
	inside func(ctx context.Context) context.Context
	// setUpIn returns the context in which it is set up. Optional.
	setUpIn func(ctx context.Context) (context.Context, error)
	// notSetUp reports whether it is never set up.
	notSetUp bool
	// ownConfig reports whether it accesses the API with another config.
	ownConfig bool
}

// nests adds a nested reconciler to set-up, validation and graph. A nil one is skipped.
func (d *description) nests(part nested) {
	if part.field == "" {
		part.field = part.role
	}
	if part.inside == nil {
		part.inside = func(ctx context.Context) context.Context { return ctx }
	}
	if !part.notSetUp && given(part.reconciler) {
		d.setsUp(part.setUp)
	}
	d.check(func(ctx context.Context, problems *problems) {
		problems.nested(part.inside(ctx), part.reconciler, "%s must have a valid %s", d.label, part.field)
	})
	d.accesses(func(n *graph.Node) {
		switch {
		case part.ownConfig:
			n.NestWithConfig(part.role, part.reconciler)
		case part.step:
			n.NestStep(part.role, part.reconciler)
		default:
			n.Nest(part.role, part.reconciler)
		}
	})
}

func (part nested) setUp(ctx context.Context, mgr Manager, bldr *Builder) error {
	if part.setUpIn != nil {
		var err error
		if ctx, err = part.setUpIn(ctx); err != nil {
			return err
		}
	}
	return setUpNested(part.inside(ctx), mgr, bldr, part.reconciler)
}

// given reports whether a field has a value.
func given(field any) bool { return !nilcheck.IsNilPointer(field) }

// logNamed returns a function that adds a name to the logger of a context.
func logNamed(name string) func(ctx context.Context) (context.Context, error) {
	return func(ctx context.Context) (context.Context, error) { return withLogName(ctx, name), nil }
}

func withLogName(ctx context.Context, name string) context.Context {
	return logr.NewContext(ctx, logr.FromContextOrDiscard(ctx).WithName(name))
}

// setUpNested sets up a nested reconciler. It records that the watches that are added belong to it.
func setUpNested(ctx context.Context, mgr Manager, bldr *Builder, reconciler setupable) error {
	defer registration.Enter(ctx, reconciler)()
	return reconciler.SetupWithManager(ctx, mgr, bldr)
}

// nestManager nests an object manager of the user that describes itself.
func nestManager(n *graph.Node, field string, manager any) {
	if describer, ok := manager.(graph.Describer); ok {
		n.Nest(field, describer)
	}
}

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
