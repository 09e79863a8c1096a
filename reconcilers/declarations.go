// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"weak"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/internal/objects/weakmap"
	"trueup.dev/observe"
)

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
	return c.root != other.root && c.parent == other.parent && c.kind == other.kind &&
		(!c.identified || !other.identified) && (!c.chooses || !other.chooses) &&
		(c.request == Request{} || other.request == Request{} || c.request == other.request)
}

// share notes that another root manages the same kind of children for the same kind of resources.
func (c rootClaim) share(other rootClaim) {
	if c.root == other.root || c.parent != other.parent || c.kind != other.kind {
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
	mine, claims := []rootClaim{}, claimsOfManagers.Of(observe.Of(mgr))
	claims.mu.Lock()
	defer claims.mu.Unlock()
	for _, child := range declarationsFrom(ctx).children {
		if child.config != nil {
			continue // it may be in another cluster
		}
		claim := rootClaim{
			root: weak.Make(requests), by: fmt.Sprintf("%s of %s %q", child.label, r.kind, r.name),
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
