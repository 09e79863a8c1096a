// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apivalidation "k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/graph"
	"trueup.dev/internal/engine/step"
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
// RBAC, in addition to that of the nested reconcilers, with the group and the plural of the reconciled resource:
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
