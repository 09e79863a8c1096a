// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"weak"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/graph"
	"trueup.dev/internal/engine/registration"
	"trueup.dev/internal/engine/setupcheck"
	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/internal/objects/weakmap"
	"trueup.dev/observe"
	"trueup.dev/validation"
)

// subReconciler is what each subreconciler of this package implements.
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

// describeTo adds a reconciler to a tree of package graph. The permissions that the reconciler needs are in the RBAC
// section in the comment of its type.
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

// declarations collects the claims of the reconcilers below one root during setup, to detect conflicting claims. One
// goroutine sets up a tree.
type declarations struct {
	// shared are the kinds of children that another root of the manager manages for resources of the same kind.
	shared                  sync.Map
	children                []childClaim
	finalizers, inventories []nameClaim
	conditions              []nameClaim
}

// claim holds the fields that all claims share.
type claim struct {
	// by is the pointer to the reconciler. A reconciler is validated several times but claims once.
	by any
	// label names the reconciler in errors.
	label  string
	branch *branch
	// config is the enclosing WithConfig, or nil. Another config may belong to another cluster.
	config any
}

// newClaim returns a claim of the reconciler by, which is set up with ctx.
func newClaim(ctx context.Context, by any, label string) claim {
	return claim{by: by, label: label, branch: branchFrom(ctx), config: ctx.Value(claimConfigKey{})}
}

type claimConfigKey struct{}

// belowConfig returns the context to set up the reconcilers below a WithConfig.
func belowConfig(ctx context.Context, withConfig any) context.Context {
	return withWiring(context.WithValue(ctx, claimConfigKey{}, withConfig), nil)
}

// childClaim claims the objects of a kind that the reconciled resource controls.
type childClaim struct {
	claim
	kind schema.GroupKind
	// identified reports whether the user identifies the children among the objects of the kind.
	identified bool
}

// sharesKind reports whether another reconciler claims the kind of children that the reconciler by claims, below the
// same root or another one.
func (d *declarations) sharesKind(by any) bool {
	if d == nil {
		return false
	}
	mine := slices.IndexFunc(d.children, func(c childClaim) bool { return c.by == by })
	if mine < 0 {
		return false
	}
	if _, shared := d.shared.Load(d.children[mine].kind); shared {
		return true
	}
	return slices.ContainsFunc(d.children, func(c childClaim) bool {
		return c.by != by && c.kind == d.children[mine].kind && c.config == d.children[mine].config
	})
}

// nameClaim claims a finalizer, the key of an inventory or the type of a condition.
type nameClaim struct {
	claim
	name string
}

type declarationsKey struct{}

// withDeclarations returns the context to set up the tree below one root.
func withDeclarations(ctx context.Context) context.Context {
	return context.WithValue(ctx, declarationsKey{}, &declarations{})
}

func declarationsFrom(ctx context.Context) *declarations {
	declared, _ := ctx.Value(declarationsKey{}).(*declarations)
	return declared
}

// branch is one of two alternatives. A request takes only one of them.
type branch struct {
	of      any
	then    bool
	outside *branch
}

type branchKey struct{}

// onBranch returns the context to set up the reconcilers on one branch of a reconciler.
func onBranch(ctx context.Context, of any, then bool) context.Context {
	if declarationsFrom(ctx) == nil {
		return ctx
	}
	return context.WithValue(ctx, branchKey{}, &branch{of: of, then: then, outside: branchFrom(ctx)})
}

func branchFrom(ctx context.Context) *branch {
	b, _ := ctx.Value(branchKey{}).(*branch)
	return b
}

// excludes reports whether no request takes both branches.
func (b *branch) excludes(other *branch) bool {
	for ; b != nil; b = b.outside {
		for o := other; o != nil; o = o.outside {
			if b.of == o.of && b.then != o.then {
				return true
			}
		}
	}
	return false
}

// overlaps reports whether different reconcilers make both claims and one request can run both.
func (c claim) overlaps(other claim) bool {
	return c.by != other.by && !c.branch.excludes(other.branch)
}

// declareChildren claims the objects of a kind that the resource controls for the reconciler by. It adds a problem if
// another reconciler claims the same kind and one of the two does not identify its children.
func declareChildren(
	ctx context.Context, problems *problems, by any, label string, childType client.Object, identified bool,
) {
	declared, config := declarationsFrom(ctx), scopeFrom(ctx).config
	if declared == nil || config == nil || config.Client == nil || nilcheck.IsNilPointer(childType) {
		return
	}
	gvk, err := config.GroupVersionKindFor(childType)
	if err != nil {
		return // setup returns a better error
	}
	mine := childClaim{claim: newClaim(ctx, by, label), kind: gvk.GroupKind(), identified: identified}
	for _, other := range declared.children {
		if other.kind != mine.kind || other.config != mine.config || !other.overlaps(mine.claim) ||
			other.identified && mine.identified {
			continue
		}
		lacking, rival := mine.claim, other.claim
		if mine.identified {
			lacking, rival = other.claim, mine.claim
		}
		problems.add("%s must implement OurChild: another reconciler, %s, manages children of kind %s too, "+
			"and without OurChild each reconciler also manages the children of the other",
			lacking.label, rival.label, mine.kind.Kind)
		break
	}
	if !slices.ContainsFunc(declared.children, func(c childClaim) bool { return c.by == by }) {
		declared.children = append(declared.children, mine)
	}
}

// declareFinalizer claims a finalizer for the reconciler by. It does nothing for an empty finalizer. It adds a problem
// if another reconciler claims the same finalizer.
func declareFinalizer(ctx context.Context, problems *problems, by any, label, finalizer string) {
	if declared := declarationsFrom(ctx); declared != nil {
		declareUnique(ctx, problems, &declared.finalizers, by, label, finalizer, "%s must define a Finalizer of its own: "+
			"another reconciler, %s, uses %q too, and the first of them to finish removes it for both")
	}
}

// declareInventory claims the inventory of a [Prune], like declareFinalizer.
func declareInventory(ctx context.Context, problems *problems, by any, label, key string) {
	if declared := declarationsFrom(ctx); declared != nil {
		declareUnique(ctx, problems, &declared.inventories, by, label, key, "%s must define an Inventory of its own: "+
			"another reconciler, %s, uses %q too, and each would delete the objects of the other")
	}
}

// declareCondition claims the type of a condition that the reconciler by sets, like declareFinalizer.
func declareCondition(ctx context.Context, problems *problems, by any, label, conditionType string) {
	if declared := declarationsFrom(ctx); declared != nil {
		declareUnique(ctx, problems, &declared.conditions, by, label, conditionType,
			"%s must define a Condition of its own: another reconciler, %s, sets %q too, and each replaces what the other says")
	}
}

func declareUnique(
	ctx context.Context, problems *problems, claims *[]nameClaim, by any, label, name, problem string,
) {
	if name == "" {
		return
	}
	mine := nameClaim{claim: newClaim(ctx, by, label), name: name}
	for _, other := range *claims {
		if other.name == name && other.overlaps(mine.claim) {
			problems.add(problem, label, other.label, name)
		}
	}
	if !slices.ContainsFunc(*claims, func(c nameClaim) bool { return c.by == by && c.name == name }) {
		*claims = append(*claims, mine)
	}
}

// heldFinalizer returns the finalizer of an object manager, or "" if it has none.
func heldFinalizer(manager any) string {
	if holder, ok := manager.(FinalizerHolder); ok && !nilcheck.IsNilPointer(manager) {
		return holder.HeldFinalizer()
	}
	return ""
}

// rootClaim is the claim of a child reconciler, as the other roots of the manager see it. It keeps neither the root nor
// the manager in memory.
type rootClaim struct {
	// root identifies the root, and by names it and the child reconciler in errors.
	root weak.Pointer[requests]
	by   string
	// cluster identifies the part of the manager that belongs to the cluster of the root, if the manager has several.
	cluster weak.Pointer[byte]
	// parent is the kind of the root. request is its only request, or empty if it reconciles all resources of its kind.
	parent   schema.GroupKind
	request  Request
	declared weak.Pointer[declarations]
	// chooses reports whether the root skips some resources of its kind.
	chooses    bool
	kind       schema.GroupKind
	identified bool
}

// conflicts reports whether the reconcilers of two roots can take the children of each other for their own. Two roots
// that both skip some resources may have no resource in common.
func (c rootClaim) conflicts(other rootClaim) bool {
	return c.root != other.root && c.cluster == other.cluster && c.parent == other.parent && c.kind == other.kind &&
		(!c.identified || !other.identified) && (!c.chooses || !other.chooses) &&
		(c.request == Request{} || other.request == Request{} || c.request == other.request)
}

// share notes that another root manages the same kind of children for the same kind of resources.
func (c rootClaim) share(other rootClaim) {
	if c.root == other.root || c.cluster != other.cluster || c.parent != other.parent || c.kind != other.kind {
		return
	}
	for _, pointer := range []weak.Pointer[declarations]{c.declared, other.declared} {
		if declared := pointer.Value(); declared != nil {
			declared.shared.Store(c.kind, true)
		}
	}
}

// rootClaims are the claims of the roots of a manager.
type rootClaims struct {
	mu  sync.Mutex
	all []rootClaim
}

// claimsOfManagers has the claims by the hub of the manager. A hub exists as long as its manager.
var claimsOfManagers weakmap.Map[observe.Hub, rootClaims]

// claimChildren claims the children in the cluster of the manager for a root that has been set up, but is not yet
// built. It returns an error if another root of the manager has a conflicting claim. Otherwise, it returns a function
// that withdraws the claims, because the root could not be built. The requests of the root identify it.
func (r root) claimChildren(
	ctx context.Context, mgr Manager, requests *requests, request Request, chooses bool,
) (withdraw func(), err error) {
	withdraw = func() {}
	if r.config.cache == nil || r.config.cache != mgr.GetCache() {
		return withdraw, nil
	}
	parent, err := r.config.GroupVersionKindFor(r.resourceType)
	if err != nil {
		return withdraw, nil // the builder returns a better error
	}
	cluster, none := weak.Pointer[byte]{}, weak.Pointer[byte]{}
	if part, _ := observe.InCluster(mgr); part != nil {
		cluster = weak.Make(weakmap.Address(part))
	}
	mine, claims := []rootClaim{}, claimsOfManagers.Of(observe.Of(mgr))
	claims.mu.Lock()
	defer claims.mu.Unlock()
	claims.all = slices.DeleteFunc(claims.all, func(c rootClaim) bool { // of clusters that are gone
		return c.cluster != none && c.cluster.Value() == nil
	})
	for _, child := range declarationsFrom(ctx).children {
		if child.config != nil {
			continue // it may be in another cluster
		}
		claim := rootClaim{
			root: weak.Make(requests), by: fmt.Sprintf("%s of %s %q", child.label, r.kind, r.name), cluster: cluster,
			declared: weak.Make(declarationsFrom(ctx)),
			parent:   parent.GroupKind(), request: request, chooses: chooses, kind: child.kind, identified: child.identified,
		}
		for _, other := range claims.all {
			if !claim.conflicts(other) {
				claim.share(other)
				continue
			}
			lacking, rival := claim, other
			if claim.identified {
				lacking, rival = other, claim
			}
			return nil, fmt.Errorf("%s must implement OurChild or ListOptions: another reconciler, %s, manages children of "+
				"kind %s of the same resources too, and without them each reconciler also manages the children of the other",
				lacking.by, rival.by, claim.kind.Kind)
		}
		mine = append(mine, claim)
	}
	claims.all = append(claims.all, mine...)
	return func() {
		claims.mu.Lock()
		defer claims.mu.Unlock()
		claims.all = slices.DeleteFunc(claims.all, func(c rootClaim) bool { return slices.Contains(mine, c) })
	}, nil
}
