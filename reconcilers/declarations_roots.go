// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"weak"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"trueup.dev/internal/objects/weakmap"
	"trueup.dev/observe"
)

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
