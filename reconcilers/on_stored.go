// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// onStored holds functions to call when the root reconciler has stored the status of the resource, or has nothing to
// store. The zero value is ready to use. It is safe for concurrent use.
type onStored struct {
	mu   sync.Mutex
	todo []func()
	// deleting reports whether the status must be stored although the resource is being deleted.
	deleting bool
}

// evenIfDeleting makes the root reconciler store the status although the resource is being deleted. It does nothing on
// a nil receiver.
func (o *onStored) evenIfDeleting() {
	if o != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.deleting = true
	}
}

// storesDeleting reports whether the status of a resource that is being deleted must be stored. After its last
// finalizer was removed, the resource does not exist.
func (o *onStored) storesDeleting(resource client.Object) bool {
	if o == nil {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.deleting && len(resource.GetFinalizers()) > 0
}

// await makes [whenStored] wait for this request. The root reconciler calls it before it calls nested reconcilers.
func (o *onStored) await(ctx context.Context) {
	if s, ok := ctx.Value(scopeKey{}).(*scope); ok {
		s.stored = o
	}
}

// confirm calls the functions. It does nothing on a nil receiver.
func (o *onStored) confirm() {
	if o == nil {
		return
	}
	o.mu.Lock()
	todo := o.todo
	o.todo = nil
	o.mu.Unlock()
	for _, do := range todo {
		do()
	}
}

// whenStored calls do after the status of the resource has been stored, and never if that fails. A step that skips work
// because it was done before must not rely on a status that exists only in memory. Without a root reconciler that
// stores the status, it calls do at once.
func whenStored(ctx context.Context, do func()) {
	o := scopeFrom(ctx).stored
	if o == nil {
		do()
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.todo = append(o.todo, do)
}
