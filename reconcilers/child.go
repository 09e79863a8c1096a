// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/graph"
	"trueup.dev/internal/engine/step"
	"trueup.dev/internal/objects/nilcheck"
)

var _ subReconciler = (*ChildReconciler[client.Object, client.Object, client.ObjectList])(nil)

// ChildReconciler manages one object, the child, for the reconciled resource, which is called the parent here. The user
// defines the desired child. The reconciler creates, updates or deletes the child and passes the current child to the
// user's function that updates the status of the parent.
//
// Which of the objects that the parent controls is the child? The first of these rules that applies decides:
//
//   - OurChild accepts it, or ListOptions select it: it is the child, whatever its name.
//   - It has the desired name and namespace: it is the child, whatever its labels.
//   - This controller made it, according to its managed fields, see the FieldOwner of [Config]: duplicates are deleted,
//     a child of another name is deleted after the new one exists, one with a generated name is found by its prefix,
//     and if no child is desired, it is deleted. A renamed child that may hold data is kept and reported with the
//     Warning event RenamedChildKept: Secrets, claims, volumes, StatefulSets, Namespaces, CustomResourceDefinitions.
//   - Otherwise it is left unchanged and reported with the Warning event UnidentifiedChildren, once for each parent.
//
// Without owner references, OurChild alone identifies the child. Children in other namespaces or clusters require
// SkipOwnerReference. Such children are not garbage-collected, so a finalizer must ensure that they are deleted, see
// [WithFinalizer] and the Finalizer field.
//
// If OurChild accepts several objects, the reconciler keeps the object of the desired name and deletes the others. If
// none has that name, it deletes all of them and creates a new child. It ignores a child that is being deleted and
// creates the new child immediately. If the new child has the same name, it is created when the old one no longer
// exists. A parent that is deleted with `--cascade=orphan` keeps its children.
//
// The object manager records all other events, see [UpdatingObjectManager].
//
// RBAC, with the group and the plural of the child's kind:
//
//	// +kubebuilder:rbac:groups=<group>,resources=<resource>,verbs=get;list;watch;create;update;patch;delete
//
// On clusters that check who may block a deletion, owner references also require permission to update the finalizers of
// the parent:
//
//	// +kubebuilder:rbac:groups=<group>,resources=<resource>/finalizers,verbs=update
type ChildReconciler[Type, ChildType client.Object, ChildListType client.ObjectList] struct {
	// Name identifies this reconciler in logs. Defaults to `<ChildType>ChildReconciler`.
	Name string

	// ChildType is the kind of the child. Defaults to the type parameter; required for unstructured objects and duck
	// types.
	ChildType ChildType

	// ChildListType is the list kind of the child. Defaults to the type parameter; required for unstructured objects and
	// duck types.
	ChildListType ChildListType

	// SkipOwnerReference creates the child without an owner reference. OurChild and ListOptions are then required.
	// Changes of the child still enqueue a request for the parent. Defaults to false.
	SkipOwnerReference bool

	// Setup registers additional watches and indexes. Optional.
	Setup func(ctx context.Context, mgr Manager, bldr *Builder) error

	// DesiredChild returns the desired child, or nil to delete it. If it returns the error [OnlyReconcileChildStatus],
	// the child is not changed. It is not called for a parent that is being deleted. Required.
	DesiredChild func(ctx context.Context, resource Type) (ChildType, error)

	// ReflectChildStatusOnParent updates the status of the parent in memory from the child in the API server. The child
	// is nil if it does not exist. After [OnlyReconcileChildStatus] it is a blank object instead. The child has a
	// deletion timestamp if a new child waits for its name. The error is nil or one
	// that ReflectedChildErrorReasons or ReflectChildErrorsAfter select.
	// It is not called for a parent that is being deleted. ReflectChildStatusOnParent or
	// ReflectChildStatusOnParentWithError is required. If both are set, the latter is used.
	ReflectChildStatusOnParent func(ctx context.Context, parent Type, child ChildType, err error)

	// ReflectChildStatusOnParentWithError is like ReflectChildStatusOnParent and can return an error.
	ReflectChildStatusOnParentWithError func(ctx context.Context, parent Type, child ChildType, err error) error

	// ReflectedChildErrorReasons are the reasons of API errors that are reflected on the parent and not returned.
	// Defaults to AlreadyExists, Forbidden, Invalid, RequestEntityTooLarge, [ReasonFieldConflict] and
	// [ReasonFieldsKept]. An empty, non-nil slice means no reasons. After a reflected error, a controller reconciles the
	// parent again after 10 seconds. The delay doubles each time, up to 5 minutes. An AlreadyExists error is not retried
	// if the conflicting object is tracked. The metric trueup_reflected_errors_total counts reflected errors.
	ReflectedChildErrorReasons []metav1.StatusReason

	// ReflectChildErrorsAfter is the number of failed attempts in a row after which any error of a request about the
	// child is reflected on the parent, for example that a webhook is down. It is then retried like the others. 1 means
	// at once. Conflicts are never reflected. The number is kept in memory. Defaults to 0: only the errors of
	// ReflectedChildErrorReasons are reflected.
	ReflectChildErrorsAfter int

	// ChildObjectManager creates, updates and deletes the child. Either ChildObjectManager or MergeBeforeUpdate is
	// required. With MergeBeforeUpdate, the reconciler uses an [UpdatingObjectManager].
	ChildObjectManager ObjectManager[ChildType]

	// MergeBeforeUpdate, HarmonizeImmutableFields, Sanitize and Finalizer set the fields of the same names of an
	// [UpdatingObjectManager]. They replace ChildObjectManager. A Finalizer implies SkipOwnerReference.
	MergeBeforeUpdate        func(current, desired ChildType)
	HarmonizeImmutableFields func(current, desired ChildType)
	Sanitize                 func(child ChildType) any
	Finalizer                string

	// ListOptions restrict the list in which the child is searched. Field selectors need an index in the cache. They
	// are omitted from lists that the API server answers. Defaults to the namespace of the parent.
	ListOptions func(ctx context.Context, resource Type) []client.ListOption

	// OurChild reports whether an object is the child. It is required if several reconcilers below one root manage
	// children of the same kind, unless they are on different branches of an [IfThen]. It must return the same value
	// for desired and stored children. It must not change the child. Optional with owner references.
	OurChild func(resource Type, child ChildType) bool

	// Adopt reports whether an object of the desired name that has no controller becomes the child: it gets the parent as
	// its controller, and is then updated. It is called if no child exists. Without it, and for objects that another
	// controller owns, the error is AlreadyExists. Events: Normal Adopted, Warning AdoptionFailed. Cannot be combined
	// with SkipOwnerReference. Defaults to no adoption.
	Adopt func(ctx context.Context, parent Type, object ChildType) bool

	// Release reports whether a child that is no longer desired is kept, without the parent as its owner, and not
	// deleted. It is not called for a parent that is being deleted. Events: Normal Released, Warning ReleaseFailed.
	// Cannot be combined with SkipOwnerReference. Defaults to true for adopted children, and to false for others.
	Release func(ctx context.Context, parent Type, child ChildType) bool

	lazyInit sync.Once
	children children[Type, ChildType]
	defaults shorthand[ChildType]
	node     step.Node
}

func (r *ChildReconciler[T, CT, CLT]) init() {
	r.lazyInit.Do(func() {
		defaultChildren(&r.ChildType, &r.ChildListType, &r.Name, "ChildReconciler", &r.ReflectedChildErrorReasons)
		if reflect := r.ReflectChildStatusOnParent; reflect != nil && r.ReflectChildStatusOnParentWithError == nil {
			r.ReflectChildStatusOnParentWithError = func(ctx context.Context, parent T, child CT, err error) error {
				reflect(ctx, parent, child, err)
				return nil
			}
		}
		if r.Finalizer != "" {
			r.SkipOwnerReference = true
		}
		r.node = step.Node{Name: r.Name, Values: []any{"childType", typeName(r.ChildType)}}
		r.defaults = shorthand[CT]{
			field: "ChildObjectManager", verb: "implement",
			given: !nilcheck.IsNilPointer(r.ChildObjectManager), merge: r.MergeBeforeUpdate,
			harmonize: r.HarmonizeImmutableFields,
			sanitize:  r.Sanitize, finalizer: r.Finalizer,
		}
		if !r.defaults.given {
			r.ChildObjectManager = r.defaults.manager(r.ChildType, r.SkipOwnerReference)
		}
		r.children = children[T, CT]{
			reconciler: fmt.Sprintf("ChildReconciler %q", r.Name), childType: r.ChildType, childListType: r.ChildListType,
			skipOwnerReference: r.SkipOwnerReference,
			manager:            r.ChildObjectManager, listOptions: r.ListOptions, ourChild: r.OurChild,
			reflects: reflectedErrorsOf{reasons: r.ReflectedChildErrorReasons, attempts: r.ReflectChildErrorsAfter},
			adopts:   r.Adopt, releases: r.Release,
		}
	})
}

// SetupWithManager validates the reconciler, watches and indexes the child's kind, sets up the object manager and calls
// Setup.
func (r *ChildReconciler[T, CT, CLT]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	return setUp(ctx, mgr, bldr, r)
}

// Validate checks the combination of fields. If ctx requests recursion, it also validates the object manager.
func (r *ChildReconciler[T, CT, CLT]) Validate(ctx context.Context) error { return validate(ctx, r) }

// DescribeTo implements [graph.Describer].
func (r *ChildReconciler[T, CT, CLT]) DescribeTo(n *graph.Node) { describeTo(n, r) }

func (r *ChildReconciler[T, CT, CLT]) describe(d *description) {
	r.init()
	d.is("ChildReconciler", r.Name)
	d.require(r.DesiredChild != nil, "must implement DesiredChild")
	d.require(r.ReflectChildStatusOnParentWithError != nil,
		"must implement ReflectChildStatusOnParent or ReflectChildStatusOnParentWithError")
	d.check(func(_ context.Context, problems *problems) { r.children.validate(problems, d.label) })
	r.children.describe(d, r, r.defaults)
	d.setsUp(r.Setup)
}

// Reconcile finds the child, brings it to its desired state and updates the status of the parent in memory. The result
// is always empty.
func (r *ChildReconciler[T, CT, CLT]) Reconcile(ctx context.Context, resource T) (Result, error) {
	r.init()
	return step.Run(ctx, r.node, resource, r.reconcile)
}

//nolint:unparam // steps return a result
func (r *ChildReconciler[T, CT, CLT]) reconcile(ctx context.Context, parent T) (Result, error) {
	candidates, err := r.children.list(ctx, parent)
	if err != nil {
		return Result{}, err
	}
	desiredChild := func() (CT, error) { return r.DesiredChild(ctx, parent) }
	if r.children.needsLiveList(ctx, parent, candidates.known) {
		desiredChild = sync.OnceValues(desiredChild)
		if wantsNone(ctx, parent, desiredChild) {
			if candidates, err = r.children.addUncached(ctx, parent, candidates); err != nil {
				return Result{}, err
			}
		}
	}
	outcome, err := r.children.manage(ctx, parent, candidates, desiredChild)
	if err != nil || outcome.skip {
		return Result{}, err
	}
	return Result{}, r.ReflectChildStatusOnParentWithError(ctx, parent, outcome.child, outcome.err)
}

func wantsNone[T, CT client.Object](ctx context.Context, parent T, desiredChild func() (CT, error)) bool {
	if MustRemove(ctx, parent) {
		return true
	}
	desired, err := desiredChild()
	return err == nil && nilcheck.IsNilPointer(desired)
}
