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

	"trueup.dev/internal/empty"
	"trueup.dev/internal/step"
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
	// live reports whether objects of all kinds are listed by the API server.
	live bool
	// remaining is the number of unwanted objects that existed, and of kinds for which it is unknown.
	remaining int
	// inNamespaces are those of wanted and unwanted objects.
	inNamespaces []string
	// refused are the kinds that the controller may not list or delete.
	refused []string
}

// prune deletes the objects that are not declared, and removes from the record what no longer exists.
func (i *inventory) prune(
	ctx context.Context, resource client.Object, emptySince *perObject[time.Time],
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
		writer: newWriter(ctx, "", resource), inventory: i,
		live: len(finalizers) > 0 || journalFrom(ctx).Live(),
	}
	p.log = logr.FromContextOrDiscard(ctx)
	errs := []error{}
	for _, kind := range i.record.Kinds {
		errs = append(errs, p.pruneKind(schema.ParseGroupKind(kind)))
	}
	if err := errors.Join(errs...); err != nil {
		return Result{}, err
	}
	p.reportRefused()
	for member := range i.declared {
		p.uses(member.Namespace)
	}

	wait := time.Duration(0)
	if len(finalizers) > 0 || len(union(kept.Kinds, i.record.Kinds)) > len(kept.Kinds) {
		wait = p.untilForgotten(emptySince)
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

// untilForgotten returns how long to wait until kinds and finalizers can be forgotten, or 0.
func (p *pruning) untilForgotten(emptySince *perObject[time.Time]) time.Duration {
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
		if !p.isUnwanted(kind, obj) {
			continue
		}
		p.remaining++
		p.uses(obj.GetNamespace())
		if obj.GetDeletionTimestamp() == nil {
			errs = append(errs, p.permitted(kind, "delete", p.deleteUnwanted(kind, obj, live)))
		}
	}
	return errors.Join(errs...)
}

// isUnwanted reports whether an object must be deleted.
func (p *pruning) isUnwanted(kind schema.GroupKind, obj client.Object) bool {
	if !p.has(obj) || p.declared[inventoryMember{kind, client.ObjectKeyFromObject(obj)}] {
		return false
	}
	if owner := metav1.GetControllerOfNoCopy(obj); owner != nil && owner.UID != p.resource.GetUID() {
		return false // another controller has adopted it
	}
	// The garbage collector deletes what a deleted resource owns.
	return p.resource.GetDeletionTimestamp() == nil || !slices.ContainsFunc(obj.GetOwnerReferences(),
		func(ref metav1.OwnerReference) bool { return ref.UID == p.resource.GetUID() })
}

// deleteUnwanted deletes an object unless it has changed.
func (p *pruning) deleteUnwanted(kind schema.GroupKind, obj client.Object, live bool) error {
	if !live {
		// What the cache has may be outdated, and a deletion cannot be undone.
		current := empty.Like(obj)
		switch err := p.reader().Get(p.ctx, client.ObjectKeyFromObject(obj), current); {
		case apierrs.IsNotFound(err):
			return nil
		case err != nil:
			return err
		case current.GetUID() != obj.GetUID(), current.GetDeletionTimestamp() != nil, !p.isUnwanted(kind, current):
			return nil
		}
		obj = current
	}
	version := obj.GetResourceVersion()
	return p.delete(obj, client.Preconditions{UID: new(obj.GetUID()), ResourceVersion: &version})
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
