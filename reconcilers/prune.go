// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apivalidation "k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/graph"
	"trueup.dev/internal/engine/ownership"
	"trueup.dev/internal/engine/step"
	"trueup.dev/internal/objects/empty"
	rtime "trueup.dev/time"
)

var _ subReconciler = (*Prune[client.Object])(nil)

// Prune deletes the children of a resource that no reconciler below it declares any more: a child that was renamed or
// moved to another namespace, a child on the branch of an [IfThen] that is not taken now, and the children of a
// [ChildReconciler] or a [ChildSetReconciler] that a new version of the controller does not have.
//
// Children get a label with the key Inventory and the UID of the resource as its value. They also get a mark: an
// annotation with the same key that names the child itself, by its kind, its namespace, its name and the UID of the
// resource. A copy of a child has the mark of another object.
//
// The resource gets an annotation with the same key, which lists the kinds, the additional namespaces and the
// finalizers of the children. It is written before the first child, and changes only when the program does. Prune finds
// objects of all kinds and namespaces in the annotation by the label: in the cache if a reconciler below manages the
// kind, and otherwise with a list from the API server, until it has found nothing for a minute. Then kinds and
// namespaces that are not used are removed from the annotation. If the annotation was changed by hand and cannot be
// read, the Warning event InventoryBroken says so, and it is written again from what is declared and what set-up knows.
//
// An object is deleted only if all of this holds:
//
//   - the whole reconcile below succeeded: no step returned an error, not even one that a [TryCatch] or an [Advice]
//     handled, no error of a child was reflected, and no step was left out by [Steps], [Retry], [RateLimit], [Periodic]
//     or [OnlyReconcileChildStatus]
//   - no reconciler below declared an object of its kind, namespace and name
//   - the API server still has the object, with the label and with a mark that names it
//   - no other controller owns the object
//
// Objects with a copy of the label are kept: a replica, a backup, or the Endpoints that Kubernetes makes with the
// labels of a Service. One Warning event PruneKept names those that would have been deleted. An object without a mark
// is from a version that set none. It counts as a child if the resource controls it, or if its managed fields say that
// this controller has set the label, see [Config.WithFormerFieldOwners]. The managed fields also distinguish an object
// with a generated name from a copy.
//
// To keep an object, remove its label. A reconciler of your own, or the function Around of an [Advice], must return an
// error if it does not call a nested reconciler whose children are to stay.
//
// A child gets its label when it is next reconciled. So let a version with Prune reconcile all resources before you
// release one that drops a reconciler. Keep the permissions to list and delete a kind until its objects are gone:
// without them, the Warning event PruneFailed names the kind. Children below a [WithConfig] are not part of the
// inventory; use another Prune below the WithConfig.
//
// When the resource is deleted, its children are garbage-collected as usual. Prune deletes objects without an owner
// reference to the resource, and removes the finalizers of dropped object managers when no such object is left. After
// kubectl delete --cascade=orphan, it keeps the objects that were declared with an owner reference.
//
// RBAC, in addition to the permissions of the nested reconcilers, with the group and the plural of the reconciled
// resource:
//
//	// +kubebuilder:rbac:groups=<group>,resources=<resource>,verbs=get;list;watch;patch
type Prune[Type client.Object] struct {
	// Name identifies this reconciler in logs. Defaults to `Prune`.
	Name string

	// Inventory is the key of the label and the annotation, a qualified name such as `websites.example.com/inventory`.
	// It must be unique and must not change: children with another label are not found. Required.
	Inventory string

	// Reconciler declares the children. Required.
	Reconciler SubReconciler[Type]

	lazyInit sync.Once
	wired    wiring
	memory   pruneMemory
}

// pruneMemory is what a [Prune] remembers between requests.
type pruneMemory struct {
	// emptySince is when nothing to prune was found of kinds and in namespaces that are not used any more.
	emptySince perObject[time.Time]
	// kept are the copies in the last warning about a resource.
	kept perObject[string]
	// copies are the versions of objects that the API server has shown to be copies, although the cache does not.
	copies perObject[string]
}

func (r *Prune[T]) init() {
	r.lazyInit.Do(func() {
		if r.Name == "" {
			r.Name = "Prune"
		}
		r.wired.key = r.Inventory
	})
}

// SetupWithManager validates the reconciler and sets up Reconciler. The kinds of its children are indexed by the label.
func (r *Prune[T]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	return setUp(ctx, mgr, bldr, r)
}

// Validate checks the required fields. If ctx requests recursion, it also validates Reconciler.
func (r *Prune[T]) Validate(ctx context.Context) error { return validate(ctx, r) }

// DescribeTo implements [graph.Describer].
func (r *Prune[T]) DescribeTo(n *graph.Node) { describeTo(n, r) }

func (r *Prune[T]) describe(d *description) {
	r.init()
	d.is("Prune", r.Name)
	switch {
	case r.Inventory == "":
		d.require(false, "must define Inventory")
	case !strings.Contains(r.Inventory, "/"):
		d.require(false, "must define an Inventory with a domain, for example %q", "example.com/"+r.Inventory)
	default:
		for _, problem := range apivalidation.IsQualifiedName(r.Inventory) {
			d.require(false, "must define a valid Inventory, got %q: %s", r.Inventory, problem)
		}
	}
	d.require(given(r.Reconciler), "must define Reconciler")
	d.accesses((*graph.Node).PatchesResource)
	d.nests(nested{
		role: "Reconciler", reconciler: r.Reconciler,
		setUpIn: func(ctx context.Context) (context.Context, error) { return withWiring(ctx, &r.wired), nil },
	})
	d.check(func(ctx context.Context, problems *problems) {
		problems.requests(ctx, d.label, true)
		declareInventory(ctx, problems, r, d.label, r.Inventory)
	})
}

// Reconcile runs Reconciler and then deletes what it does not declare.
func (r *Prune[T]) Reconcile(ctx context.Context, resource T) (Result, error) {
	r.init()
	return step.Run(ctx, step.Node{Name: r.Name}, resource, r.reconcile)
}

func (r *Prune[T]) reconcile(ctx context.Context, resource T) (Result, error) {
	if resource.GetUID() == "" {
		return Result{}, fmt.Errorf("%s %q has no UID, so it has no inventory", typeName(resource), resource.GetName())
	}
	inventory := &inventory{
		key: r.Inventory, value: string(resource.GetUID()), wired: &r.wired,
		request: ctx,
		claimed: map[schema.GroupKind]bool{}, declared: map[inventoryMember]bool{},
	}
	if err := inventory.read(resource); err != nil {
		logr.FromContextOrDiscard(ctx).Error(err, "the annotation is not an inventory, and is written again",
			"annotation", r.Inventory)
		RetrieveOriginalConfigOrDie(ctx).recorder().Eventf(resource, corev1.EventTypeWarning, "InventoryBroken",
			"The annotation %s has been changed and is not an inventory: %v. It is written again, without what only a former "+
				"version has recorded", r.Inventory, err)
	}
	if resource.GetDeletionTimestamp() == nil {
		kinds, finalizers := r.wired.members()
		if err := inventory.write(ctx, resource, inventory.record.with(kinds, nil, finalizers)); err != nil {
			return Result{}, err
		}
	}
	trace := step.Of(ctx)
	if trace == nil {
		trace = &step.Trace{}
		ctx = step.Root(ctx, trace)
	}
	errorsBefore := trace.Errors()
	s := scopeFrom(ctx)
	s.inventory = inventory
	result, err := r.Reconciler.Reconcile(s.onto(ctx), resource)
	if err != nil || inventory.isIncomplete() || trace.Errors() != errorsBefore {
		return result, err
	}
	after, err := inventory.prune(ctx, resource, &r.memory)
	return AggregateResults(result, after), err
}

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
	// inNamespaces are the namespaces of wanted and unwanted objects.
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

// isUnwanted reports whether an object must be deleted if it is not a copy.
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
		noteReflected(p.ctx, metav1.StatusReasonForbidden, false)
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

// mark is the annotation of an object in an inventory. It names the object itself. So a copy of the object, with its
// labels and annotations, has the mark of another object: one of another kind, in another namespace or with another
// name.
type mark struct {
	kind, namespace string
	// name is the name, or if the API server generates it, the prefix and "*".
	name string
	// parent is the UID of the resource whose inventory it is.
	parent string
	// owned reports whether the object was declared with an owner reference to the resource.
	owned bool
}

const (
	ownedMark = "owned"
	// anyName stands for the generated end of a name. No name has it.
	anyName = "*"
)

// newMark returns the mark of a declared object.
func newMark(kind schema.GroupKind, desired, parent client.Object) mark {
	m := mark{
		kind: kind.String(), namespace: desired.GetNamespace(), name: desired.GetName(),
		parent: string(parent.GetUID()), owned: isOwnedBy(desired, parent),
	}
	if m.name == "" {
		m.name = generatedPrefix(desired) + anyName
	}
	return m
}

func (m mark) String() string {
	parts := []string{m.kind, m.namespace, m.name, m.parent}
	if m.owned {
		parts = append(parts, ownedMark)
	}
	return strings.Join(parts, "/")
}

// parseMark returns the mark that a text is, or false.
func parseMark(text string) (mark, bool) {
	parts := strings.Split(text, "/")
	owned := len(parts) == 5 && parts[4] == ownedMark
	if len(parts) != 4 && !owned {
		return mark{}, false
	}
	return mark{kind: parts[0], namespace: parts[1], name: parts[2], parent: parts[3], owned: owned}, true
}

// prefix returns the prefix of a name that the API server has generated.
func (m mark) prefix() (prefix string, generated bool) { return strings.CutSuffix(m.name, anyName) }

// names reports whether it is the mark of an object.
func (m mark) names(kind schema.GroupKind, obj client.Object) bool {
	if m.kind != kind.String() || m.namespace != obj.GetNamespace() {
		return false
	}
	if prefix, generated := m.prefix(); generated {
		return strings.HasPrefix(obj.GetName(), prefix)
	}
	return m.name == obj.GetName()
}

// markOf returns the mark of an object, and whether it has one. A mark that cannot be read names no object.
func (i *inventory) markOf(obj client.Object) (m mark, marked bool) {
	text, marked := obj.GetAnnotations()[i.key]
	m, _ = parseMark(text)
	return m, marked
}

// made reports whether an object with the label is one that was declared, and no copy of one.
//
// A mark for a generated name also fits copies in the namespace. An object without a mark may have its label from a
// version of this module that set none. For both, the managed fields tell who has set it.
func (i *inventory) made(kind schema.GroupKind, obj client.Object) bool {
	m, marked := i.markOf(obj)
	if !marked {
		owner := metav1.GetControllerOfNoCopy(obj)
		return owner != nil && string(owner.UID) == i.value || i.wrote(obj, "f:labels")
	}
	if m.parent != i.value || !m.names(kind, obj) {
		return false
	}
	_, generated := m.prefix()
	return !generated || i.wrote(obj, "f:annotations")
}

// wrote reports whether the managed fields say that this controller, or a former one, has set the label or the mark.
// Objects without any managed fields exist in table tests, and in caches that remove them: a cached object is read
// again before it is deleted.
func (i *inventory) wrote(obj client.Object, where string) bool {
	entries := obj.GetManagedFields()
	if len(entries) == 0 {
		return true
	}
	owners := append(slices.Clone(RetrieveOriginalConfigOrDie(i.request).formerFieldOwners()), fieldOwner(i.request))
	return slices.ContainsFunc(entries, func(entry metav1.ManagedFieldsEntry) bool {
		if entry.Manager == "" || !slices.Contains(owners, entry.Manager) {
			return false
		}
		metadata, _ := ownership.FieldsOf(entry)["f:metadata"].(map[string]any)
		fields, _ := metadata[where].(map[string]any)
		_, ok := fields["f:"+i.key]
		return ok
	})
}
