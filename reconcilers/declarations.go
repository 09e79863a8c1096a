// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// declarations collects what the reconciler tree below one root claims for itself while the tree is set up, to find
// claims that exclude each other. A tree is set up by one goroutine.
type declarations struct {
	children   []childClaim
	finalizers []finalizerClaim
}

// claim is the part that all claims have in common.
type claim struct {
	// by is the pointer to the reconciler: a reconciler is validated several times, and makes its claim once.
	by any
	// label names the reconciler in an error.
	label  string
	branch *branch
	// config is the WithConfig around the reconciler, if any. What another config reaches may be another cluster.
	config any
}

// newClaim returns the claim of the reconciler by, which ctx is for setting up.
func newClaim(ctx context.Context, by any, label string) claim {
	return claim{by: by, label: label, branch: branchFrom(ctx), config: ctx.Value(claimConfigKey{})}
}

type claimConfigKey struct{}

// belowConfig returns a context for setting up the reconcilers below a WithConfig.
func belowConfig(ctx context.Context, withConfig any) context.Context {
	return context.WithValue(ctx, claimConfigKey{}, withConfig)
}

// childClaim is the claim to the objects of a kind that the reconciled resource controls.
type childClaim struct {
	claim
	kind schema.GroupKind
	// told reports whether the author tells its children from others of the kind.
	told bool
}

type finalizerClaim struct {
	claim
	finalizer string
}

type declarationsKey struct{}

// withDeclarations returns a context for setting up the tree below one root.
func withDeclarations(ctx context.Context) context.Context {
	return context.WithValue(ctx, declarationsKey{}, &declarations{})
}

func declarationsFrom(ctx context.Context) *declarations {
	declared, _ := ctx.Value(declarationsKey{}).(*declarations)
	return declared
}

// branch is one of two alternatives, of which a request takes one.
type branch struct {
	of      any
	then    bool
	outside *branch
}

type branchKey struct{}

// onBranch returns a context for setting up the reconcilers on one branch of a reconciler.
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

// overlaps reports whether both claims are made in one request, by different reconcilers.
func (c claim) overlaps(other claim) bool {
	return c.by != other.by && !c.branch.excludes(other.branch)
}

// declareChildren claims the objects of a kind that the resource controls for the reconciler by. It adds a problem when
// another reconciler claims them too, and one of the two does not tell which are its own.
func declareChildren(
	ctx context.Context, problems *problems, by any, label string, childType client.Object, told bool,
) {
	declared, config := declarationsFrom(ctx), scopeFrom(ctx).config
	if declared == nil || config == nil || config.Client == nil || isNil(childType) {
		return
	}
	gvk, err := config.GroupVersionKindFor(childType)
	if err != nil {
		return // set-up has the better error
	}
	mine := childClaim{claim: newClaim(ctx, by, label), kind: gvk.GroupKind(), told: told}
	for _, other := range declared.children {
		if other.kind != mine.kind || other.config != mine.config || !other.overlaps(mine.claim) || other.told && mine.told {
			continue
		}
		lacking, rival := mine.claim, other.claim
		if mine.told {
			lacking, rival = other.claim, mine.claim
		}
		problems.add("%s must implement OurChild: another reconciler, %s, manages children of kind %s too, "+
			"and without OurChild each takes those of the other for its own", lacking.label, rival.label, mine.kind.Kind)
		break
	}
	if !slices.ContainsFunc(declared.children, func(c childClaim) bool { return c.by == by }) {
		declared.children = append(declared.children, mine)
	}
}

// declareFinalizer claims a finalizer, if there is one, for the reconciler by. It adds a problem when another
// reconciler claims it too.
func declareFinalizer(ctx context.Context, problems *problems, by any, label, finalizer string) {
	declared := declarationsFrom(ctx)
	if declared == nil || finalizer == "" {
		return
	}
	mine := finalizerClaim{claim: newClaim(ctx, by, label), finalizer: finalizer}
	for _, other := range declared.finalizers {
		if other.finalizer == finalizer && other.overlaps(mine.claim) {
			problems.add("%s must define a Finalizer of its own: another reconciler, %s, uses %q too, "+
				"and the first of them to finish removes it for both", label, other.label, finalizer)
		}
	}
	if !slices.ContainsFunc(declared.finalizers, func(c finalizerClaim) bool { return c.by == by }) {
		declared.finalizers = append(declared.finalizers, mine)
	}
}

// heldFinalizer is the finalizer that an object manager holds, "" for none.
func heldFinalizer(manager any) string {
	if holder, ok := manager.(FinalizerHolder); ok && !isNil(manager) {
		return holder.HeldFinalizer()
	}
	return ""
}
