// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/engine/step"
	"trueup.dev/internal/objects/empty"
	rtime "trueup.dev/time"
)

const (
	// pruneInterval is how long to wait before a kind that the controller does not watch is listed again.
	pruneInterval = 10 * time.Second
	// forgetAfter is how long no object may have been found before a kind is forgotten. A request of the process before
	// can still take effect after it has ended: the API server limits requests to one minute by default
	// (--request-timeout).
	forgetAfter = time.Minute
)

// pruning deletes the objects that a whole reconcile did not declare.
type pruning struct {
	writer
	*inventory
	memory *pruneMemory
	// live reports whether objects of all kinds are listed by the API server.
	live bool
	// remaining is the number of unwanted objects that existed, and of kinds for which it is unknown.
	remaining int
	// inNamespaces are those of wanted and unwanted objects.
	inNamespaces []string
	// refused are the kinds that the controller may not list or delete.
	refused []string
	// copies are the objects that are kept because they have the label of another object.
	copies []string
}

// prune deletes the objects that are not declared, and removes from the record what no longer exists.
func (i *inventory) prune(
	ctx context.Context, resource client.Object, memory *pruneMemory,
) (Result, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	wiredKinds, wiredFinalizers := i.wired.members()
	kept := inventoryRecord{Kinds: wiredKinds, Finalizers: wiredFinalizers}
	for kind := range i.claimed {
		kept = kept.with([]string{kind.String()}, nil, nil)
	}
	// The finalizers that no reconciler removes in this reconcile.
	finalizers := slices.DeleteFunc(slices.Clone(i.record.Finalizers), func(f string) bool {
		return slices.Contains(i.active, f) || !slices.Contains(resource.GetFinalizers(), f)
	})
	p := &pruning{
		writer: newWriter(ctx, "", resource), inventory: i, memory: memory,
		live: len(finalizers) > 0 || journalFrom(ctx).Live(),
	}
	p.log = logr.FromContextOrDiscard(ctx)
	errs := []error{}
	for _, kind := range i.record.Kinds {
		errs = append(errs, p.pruneKind(schema.ParseGroupKind(kind)))
	}
	p.reportCopies()
	if err := errors.Join(errs...); err != nil {
		return Result{}, err
	}
	p.reportRefused()
	for member := range i.declared {
		p.uses(member.Namespace)
	}

	wait, used := time.Duration(0), kept.with(nil, p.inNamespaces, nil)
	if len(finalizers) > 0 || len(union(kept.Kinds, i.record.Kinds)) > len(kept.Kinds) ||
		resource.GetDeletionTimestamp() == nil && len(union(used.Namespaces, i.record.Namespaces)) > len(used.Namespaces) {
		wait = p.untilForgotten()
	}
	if wait > 0 {
		kept = kept.with(i.record.Kinds, i.record.Namespaces, i.record.Finalizers)
		finalizers = nil
	}
	for _, finalizer := range finalizers {
		if err := ClearFinalizer(ctx, resource, finalizer); err != nil {
			return Result{}, err
		}
	}
	result := Result{RequeueAfter: wait}
	if len(p.refused) > 0 {
		result = Result{} // retried like an error that is reflected
	}
	if resource.GetDeletionTimestamp() != nil {
		return result, nil
	}
	return result, i.write(ctx, resource, kept.with(nil, p.inNamespaces, i.active))
}

// untilForgotten returns how long to wait until kinds, namespaces and finalizers can be forgotten, or 0.
func (p *pruning) untilForgotten() time.Duration {
	emptySince := &p.memory.emptySince
	if p.remaining > 0 {
		emptySince.forget(p.resource)
		return pruneInterval
	}
	now := rtime.RetrieveNow(p.ctx)
	since, ok := emptySince.get(p.resource)
	if !ok {
		since = now
		emptySince.put(p.resource, since, now, now.Add(stateTTL))
	}
	if wait := since.Add(forgetAfter).Sub(now); wait > 0 {
		return wait
	}
	emptySince.forget(p.resource)
	return 0
}

// uses notes that objects are in a namespace.
func (p *pruning) uses(namespace string) {
	if namespace != p.resource.GetNamespace() {
		p.inNamespaces = union(p.inNamespaces, []string{namespace})
	}
}

// pruneKind deletes the objects of one kind.
func (p *pruning) pruneKind(kind schema.GroupKind) error {
	found, live, err := p.list(kind)
	if err != nil {
		return p.permitted(kind, "list", err)
	}
	slices.SortFunc(found, func(a, b client.Object) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	errs := []error{}
	for _, obj := range found {
		if p.isRecorded(obj) && p.isUnwanted(kind, obj) {
			errs = append(errs, p.permitted(kind, "delete", p.pruneObject(kind, obj, live)))
		}
	}
	return errors.Join(errs...)
}

// isRecorded reports whether the record has the namespace of an object.
func (p *pruning) isRecorded(obj client.Object) bool {
	namespace := obj.GetNamespace()
	return namespace == "" || namespace == p.resource.GetNamespace() ||
		slices.Contains(p.record.Namespaces, namespace) || slices.Contains(p.record.Namespaces, "*")
}

// isUnwanted reports whether an object must be deleted if it is no copy.
func (p *pruning) isUnwanted(kind schema.GroupKind, obj client.Object) bool {
	if !p.has(obj) || p.declared[inventoryMember{kind, client.ObjectKeyFromObject(obj)}] {
		return false
	}
	if owner := metav1.GetControllerOfNoCopy(obj); owner != nil && owner.UID != p.resource.GetUID() {
		return false // another controller has adopted it
	}
	if p.resource.GetDeletionTimestamp() == nil {
		return true
	}
	if isOwnedBy(obj, p.resource) {
		return false // left to the garbage collector: it deletes the object, or only the reference
	}
	m, marked := p.markOf(obj)
	return !m.owned && (marked || !orphans(p.resource))
}

// pruneObject deletes an object unless it is a copy or has changed.
func (p *pruning) pruneObject(kind schema.GroupKind, obj client.Object, live bool) error {
	isCopy := !p.made(kind, obj) || p.isKnownCopy(obj)
	switch deleting := obj.GetDeletionTimestamp() != nil; {
	case isCopy && !deleting:
		p.keepCopy(kind, obj)
		return nil
	case isCopy:
		return nil
	case deleting:
		p.unwanted(obj)
		return nil
	}
	if !live {
		// What the cache has may be outdated or without managed fields, and a deletion cannot be undone.
		current := empty.Like(obj)
		err := p.reader().Get(p.ctx, client.ObjectKeyFromObject(obj), current)
		isUnwanted := err == nil && current.GetUID() == obj.GetUID() && current.GetDeletionTimestamp() == nil &&
			p.isUnwanted(kind, current)
		if isUnwanted && !p.made(kind, current) {
			now := rtime.RetrieveNow(p.ctx)
			p.memory.copies.put(obj, obj.GetResourceVersion(), now, now.Add(stateTTL))
			p.keepCopy(kind, obj)
			return nil
		}
		if !isUnwanted {
			p.unwanted(obj)
			return client.IgnoreNotFound(err)
		}
		obj = current
	}
	p.unwanted(obj)
	version := obj.GetResourceVersion()
	return p.delete(obj, client.Preconditions{UID: new(obj.GetUID()), ResourceVersion: &version})
}

// unwanted notes that an unwanted object existed.
func (p *pruning) unwanted(obj client.Object) {
	p.remaining++
	p.uses(obj.GetNamespace())
}

// isKnownCopy reports whether the API server has shown that this version of an object is a copy.
func (p *pruning) isKnownCopy(obj client.Object) bool {
	version, ok := p.memory.copies.get(obj)
	return ok && version != "" && version == obj.GetResourceVersion()
}

func (p *pruning) keepCopy(kind schema.GroupKind, obj client.Object) {
	name := obj.GetName()
	if namespace := obj.GetNamespace(); namespace != p.resource.GetNamespace() {
		name = namespace + "/" + name
	}
	p.copies = append(p.copies, kind.Kind+" "+name)
}

// maxReportedCopies limits the text of an event.
const maxReportedCopies = 10

// reportCopies warns about copies, once for each resource and set of copies.
func (p *pruning) reportCopies() {
	if len(p.copies) == 0 {
		p.memory.kept.forget(p.resource)
		return
	}
	slices.Sort(p.copies)
	names := strings.Join(p.copies, ", ")
	now := rtime.RetrieveNow(p.ctx)
	if reported, ok := p.memory.kept.get(p.resource); ok && reported == names {
		return
	}
	p.memory.kept.put(p.resource, names, now, now.Add(stateTTL))
	p.log.Info("keeping objects that have the label of the inventory, but are not ours", "objects", p.copies)
	if more := len(p.copies) - maxReportedCopies; more > 0 {
		names = fmt.Sprintf("%s and %d more", strings.Join(p.copies[:maxReportedCopies], ", "), more)
	}
	p.original.recorder().Eventf(p.resource, corev1.EventTypeWarning, "PruneKept",
		"Kept, not ours: %s. The label %s=%s is a copy", names, p.key, p.value)
}

// list returns the objects of a kind with the label, and whether the API server has returned them.
func (p *pruning) list(kind schema.GroupKind) (found []client.Object, live bool, err error) {
	if forms := p.wired.of(kind); len(forms) > 0 && !p.live {
		for _, form := range forms {
			list := empty.Like(form.list)
			var option client.ListOption = client.MatchingLabels{p.key: p.value}
			if p.config.owners.has(form.index) {
				option = client.MatchingFields{form.index.field: p.value}
			}
			if err := p.config.List(p.ctx, list, option, client.UnsafeDisableDeepCopy); err != nil {
				return nil, false, err
			}
			items, err := listItems[client.Object](list)
			if err != nil {
				return nil, false, err
			}
			found = append(found, items...)
		}
		return found, false, nil
	}
	version, clusterScoped, err := p.versionOf(kind)
	if err != nil {
		return nil, true, err
	}
	for _, namespace := range p.namespaces(clusterScoped) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(version.WithKind(kind.Kind + "List"))
		options := []client.ListOption{client.InNamespace(namespace), client.MatchingLabels{p.key: p.value}}
		err := p.reader().List(p.ctx, list, options...)
		if meta.IsNoMatchError(err) {
			return nil, true, nil // the kind was removed, and its objects with it
		}
		if err != nil {
			return nil, true, err
		}
		items, err := listItems[client.Object](list)
		if err != nil {
			return nil, true, err
		}
		found = append(found, items...)
	}
	return found, true, nil
}

// versionOf returns a version of a kind, and whether its objects are cluster-scoped. The clients of table tests know
// the versions of the scheme only.
func (p *pruning) versionOf(kind schema.GroupKind) (version schema.GroupVersion, clusterScoped bool, err error) {
	mapping, err := p.config.RESTMapper().RESTMapping(kind)
	if err == nil {
		return mapping.GroupVersionKind.GroupVersion(), mapping.Scope.Name() == meta.RESTScopeNameRoot, nil
	}
	if !meta.IsNoMatchError(err) {
		return version, false, err
	}
	for _, known := range p.config.Scheme().VersionsForGroupKind(kind) {
		return known, false, nil
	}
	return schema.GroupVersion{Group: kind.Group, Version: runtime.APIVersionInternal}, false, nil
}

// namespaces returns the namespaces to list, or "" for all.
func (p *pruning) namespaces(clusterScoped bool) []string {
	switch {
	case clusterScoped, slices.Contains(p.record.Namespaces, "*"):
		return []string{""}
	case p.resource.GetNamespace() == "":
		return p.record.Namespaces
	}
	return append([]string{p.resource.GetNamespace()}, p.record.Namespaces...)
}

func (p *pruning) reader() client.Reader {
	if p.config.APIReader != nil {
		return p.config.APIReader
	}
	return p.config.Client
}

// permitted returns the error of a request, unless the controller lacks a permission: that is reported and retried
// later.
func (p *pruning) permitted(kind schema.GroupKind, verb string, err error) error {
	if apierrs.IsForbidden(err) {
		p.log.Error(err, "unable to prune", "kind", kind.String())
		p.refused = union(p.refused, []string{kind.String()})
		p.remaining++
		reflectedFrom(p.ctx).note(metav1.StatusReasonForbidden, false)
		return nil
	}
	if err != nil {
		err = fmt.Errorf("prune %s: %s: %w", kind, verb, err)
		step.About(p.ctx, err, kind.String())
	}
	return err
}

func (p *pruning) reportRefused() {
	if len(p.refused) > 0 {
		p.original.recorder().Eventf(p.resource, corev1.EventTypeWarning, "PruneFailed",
			"Not allowed to list or delete %s: keep these permissions until the objects with the label %s=%s are gone",
			strings.Join(p.refused, ", "), p.key, p.value)
	}
}
