// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/difference"
	"trueup.dev/internal/engine/ownership"
)

// owner returns the field owner of a request.
func (r *ApplyingObjectManager[T]) owner(ctx context.Context) string {
	owner := r.FieldOwner
	if owner == "" {
		owner = fieldOwner(ctx)
	}
	if owner == "" {
		return r.formerDefault(ctx)
	}
	return owner[:min(len(owner), maxFieldOwner)]
}

// formerDefault returns the default field owner of earlier versions. It depends on names that authors change.
func (r *ApplyingObjectManager[T]) formerDefault(ctx context.Context) string {
	owner := cmp.Or(scopeFrom(ctx).controller, r.Name)
	return owner[:min(len(owner), maxFieldOwner)]
}

// formerOwners are the field managers whose fields are moved to the owner.
type formerOwners struct{ updates, applies sets.Set[string] }

// former returns the former owners of a request. Fields that another manager of this controller applies, with another
// owner, are not moved: without an own FieldOwner, a manager only moves what managers without FieldOwner have applied.
func (r *ApplyingObjectManager[T]) former(ctx context.Context, owner string) formerOwners {
	former := formerOwners{updates: sets.New(r.FormerOwners...), applies: sets.New(r.FormerOwners...)}
	var known []string
	if config := scopeFrom(ctx).originalConfig; config != nil {
		known = config.formerFieldOwners()
	}
	former.updates.Insert(known...)
	if created := fieldOwner(ctx); created != "" {
		former.updates.Insert(created)
		if r.FieldOwner == "" {
			former.applies.Insert(r.formerDefault(ctx))
		}
	}
	if r.FieldOwner == "" {
		former.applies.Insert(known...)
	}
	former.applies.Delete(owner)
	return former
}

// has reports whether the fields of an entry are to be moved.
func (f formerOwners) has(entry metav1.ManagedFieldsEntry) bool {
	switch {
	case entry.Subresource != "" || entry.FieldsV1 == nil:
		return false
	case entry.Operation == metav1.ManagedFieldsOperationApply:
		return f.applies.Has(entry.Manager)
	}
	return entry.Operation == metav1.ManagedFieldsOperationUpdate && f.updates.Has(entry.Manager)
}

// beforeFirstApply is the field manager to which the API server attributes the fields of an object without managed
// fields when the object is applied for the first time. No client has this name.
const beforeFirstApply = "before-first-apply"

func isBeforeFirstApply(entry metav1.ManagedFieldsEntry) bool {
	return entry.Manager == beforeFirstApply && entry.Operation == metav1.ManagedFieldsOperationUpdate
}

// moveFields returns the managed fields in which the owner has the fields of its former owners, and the names of these.
// If the owner has applied the object, the fields from before the first apply have no owner any more: the object is a
// child, and it is unknown which client has set them.
func moveFields(entries []metav1.ManagedFieldsEntry, former formerOwners, owner string) (
	moved []metav1.ManagedFieldsEntry, from []string, err error,
) {
	holder := &metav1.PartialObjectMetadata{}
	for _, entry := range entries {
		holder.ManagedFields = append(holder.ManagedFields, *entry.DeepCopy()) // csaupgrade changes the fields in place
	}
	names := []string{} // of the entries to move, each once
	for i := range holder.ManagedFields {
		entry := &holder.ManagedFields[i]
		if !former.has(*entry) {
			continue
		}
		from = append(from, entry.Manager)
		if entry.Operation == metav1.ManagedFieldsOperationApply {
			// csaupgrade moves the fields of updates. The manager may have both.
			entry.Operation, entry.Manager = metav1.ManagedFieldsOperationUpdate, entry.Manager+" (Apply)"
		}
		names = append(names, entry.Manager)
	}
	for _, name := range slices.Compact(names) {
		if err := csaupgrade.UpgradeManagedFields(holder, sets.New(name), owner); err != nil {
			return nil, nil, fmt.Errorf("moving the fields of %q to %q: %w", name, owner, err)
		}
	}
	if _, ours := ownership.EntryOf(holder.ManagedFields, owner); ours {
		before := len(holder.ManagedFields)
		holder.ManagedFields = slices.DeleteFunc(holder.ManagedFields, isBeforeFirstApply)
		if len(holder.ManagedFields) < before {
			from = append(from, beforeFirstApply)
		}
	}
	return holder.ManagedFields, from, nil
}

// move moves the fields of former owners of an object to the owner, with one request if there are any.
func (a application[T]) move(live T) (T, error) {
	fields, from, err := moveFields(live.GetManagedFields(), a.manager.former(a.ctx, a.owner), a.owner)
	if err != nil || len(from) == 0 {
		return live, err
	}
	// A version in the patch makes the API server refuse it if the object has changed since.
	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": fields},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": live.GetResourceVersion()},
	})
	if err != nil {
		return live, err
	}
	moved := live.DeepCopyObject().(T)
	err = a.config.Patch(a.ctx, moved, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(a.owner))
	if err != nil {
		return live, fmt.Errorf("moving the fields of %q to %q: %w", from, a.owner, err)
	}
	a.log.Info("moved the fields of former owners", "resource", identify(moved), "owner", a.owner, "former", from)
	return moved, nil
}

// applies records what a request applies, to find steps that take each other's fields. It is safe for concurrent use.
type applies struct {
	mu      sync.Mutex
	objects map[appliedName]appliedBy
}

// appliedName is an object and an owner of its fields.
type appliedName struct {
	owner string
	cache cache.Cache
	schema.GroupKind
	types.NamespacedName
}

// appliedBy is the manager that has applied an object, and what it has applied.
type appliedBy struct {
	manager any
	name    string
	desired client.Object
}

// alternation is the two desired objects that one request has applied one after the other.
type alternation struct {
	in            *applies
	first, second client.Object
}

// mustBeAlone returns an error if another step applies other fields of the object with the same owner: each apply
// removes the fields of the other. A manager that applies two desired objects in one request is only refused when it
// repeats both in the next request. Otherwise the second one may replace the first.
func (a application[T]) mustBeAlone() error {
	request := scopeFrom(a.ctx).applies
	if request == nil {
		return nil
	}
	gvk, err := a.config.GroupVersionKindFor(a.desired)
	if err != nil {
		return nil // the request returns a better error
	}
	name := appliedName{a.owner, a.config.cache, gvk.GroupKind(), client.ObjectKeyFromObject(a.desired)}
	this := appliedBy{manager: a.manager, name: a.manager.Name, desired: a.desired}
	request.mu.Lock()
	defer request.mu.Unlock()
	other, ok := request.objects[name]
	if !ok {
		if request.objects == nil {
			request.objects = map[appliedName]appliedBy{}
		}
		request.objects[name] = this
		return nil
	}
	if equalObjects(other.desired, this.desired) {
		return nil
	}
	if other.manager == this.manager {
		found := alternation{request, other.desired, this.desired}
		last, known := a.manager.alternations.swap(name, found)
		if !known || last.in == request || !equalObjects(last.first, found.first) ||
			!equalObjects(last.second, found.second) {
			return nil
		}
	}
	return fmt.Errorf("%s is applied by two steps with the field owner %q: each removes the fields of the other. "+
		"Set another FieldOwner of ApplyingObjectManager %q, and use a manager for each step (the other is %q)",
		identify(a.desired), a.owner, this.name, other.name)
}

func equalObjects(a, b client.Object) bool {
	return reflect.TypeOf(a) == reflect.TypeOf(b) && difference.Equal(a, b)
}

// alternations holds the last alternation of each object. It is safe for concurrent use. Steps rarely apply two desired
// objects.
type alternations struct {
	mu   sync.Mutex
	last map[appliedName]alternation
}

// maxAlternations limits the memory of alternations.
const maxAlternations = 1000

// swap stores an alternation and returns the one before.
func (a *alternations) swap(name appliedName, now alternation) (last alternation, known bool) {
	now.first, now.second = copied(now.first), copied(now.second)
	a.mu.Lock()
	defer a.mu.Unlock()
	last, known = a.last[name]
	if a.last == nil || len(a.last) >= maxAlternations {
		a.last = map[appliedName]alternation{}
	}
	a.last[name] = now
	return last, known
}

func copied(obj client.Object) client.Object { return obj.DeepCopyObject().(client.Object) }
