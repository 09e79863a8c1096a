// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/step"
	"trueup.dev/validation"
)

var (
	_ SubReconciler[client.Object] = (*ChildReconciler[client.Object, client.Object, client.ObjectList])(nil)
	_ validation.Validator         = (*ChildReconciler[client.Object, client.Object, client.ObjectList])(nil)
)

// ChildReconciler manages one object on behalf of the reconciled resource, which is called the parent here. The author
// says what the child should look like; the reconciler creates, updates or deletes it accordingly, and hands the child
// as it is to the author to reflect on the parent's status.
//
// A child is an object that the parent controls, and that OurChild accepts. Without OurChild it is the one of those
// that has the desired name, or a generated name with the desired prefix; others are left alone, with a Warning event
// UnidentifiedChildren, once for each parent. Without owner references (SkipOwnerReference, needed for children in
// other namespaces or clusters) OurChild alone decides; such a child is not garbage collected, so a finalizer has to
// make sure that it is deleted, see [WithFinalizer] and the Finalizer field.
//
// If several objects are the child, the one of the desired name is kept and the others are deleted; if none has that
// name, all are deleted and a new one is created. A child that is being deleted does not count: a new one takes its
// place at once, or, when it is to have the same name, as soon as that is free.
//
// All other events come from the object manager, see [UpdatingObjectManager].
//
// RBAC, with the group and the plural of the child's kind:
//
//	// +kubebuilder:rbac:groups=<group>,resources=<resource>,verbs=get;list;watch;create;update;patch;delete
//
// and, for owner references on clusters that check who may block a deletion, with those of the parent:
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

	// SkipOwnerReference leaves the child without an owner reference. OurChild and ListOptions are then required. Changes
	// of the child trigger the parent all the same. Defaults to false.
	SkipOwnerReference bool

	// Setup registers further watches and indexes. Optional.
	Setup func(ctx context.Context, mgr Manager, bldr *Builder) error

	// DesiredChild returns the child as it should be, or nil when there should be none. [OnlyReconcileChildStatus] as the
	// error leaves the child alone. It is not called for a parent that is being deleted. Required.
	DesiredChild func(ctx context.Context, resource Type) (ChildType, error)

	// ReflectChildStatusOnParent updates the status of the parent, in memory, with the child as the API server has it. The
	// child is nil when there is none, or blank after [OnlyReconcileChildStatus], and has a deletion timestamp when a new
	// one waits for its name. The error is nil or one of ReflectedChildErrorReasons. It is not called for a parent that is
	// being deleted. This or ReflectChildStatusOnParentWithError is required; the latter is used when both are there.
	ReflectChildStatusOnParent func(ctx context.Context, parent Type, child ChildType, err error)

	// ReflectChildStatusOnParentWithError is ReflectChildStatusOnParent that can fail.
	ReflectChildStatusOnParentWithError func(ctx context.Context, parent Type, child ChildType, err error) error

	// ReflectedChildErrorReasons are the API errors that are reflected on the parent instead of being returned. Defaults
	// to AlreadyExists, Forbidden and Invalid; an empty slice that is not nil means none. In a controller the parent is
	// reconciled again 10 seconds after a reflected error, and then after twice as long each time, up to 5 minutes; not
	// for AlreadyExists if the object in the way is tracked. The metric trueup_reflected_errors_total counts them.
	ReflectedChildErrorReasons []metav1.StatusReason

	// ChildObjectManager creates, updates and deletes the child. Either this is required or MergeBeforeUpdate, which makes
	// it an [UpdatingObjectManager].
	ChildObjectManager ObjectManager[ChildType]

	// MergeBeforeUpdate, HarmonizeImmutableFields, Sanitize and Finalizer are the fields of an [UpdatingObjectManager] of
	// the same names, to be used instead of ChildObjectManager. A Finalizer implies SkipOwnerReference.
	MergeBeforeUpdate        func(current, desired ChildType)
	HarmonizeImmutableFields func(current, desired ChildType)
	Sanitize                 func(child ChildType) any
	Finalizer                string

	// ListOptions select the objects among which to look for the child. Field selectors need an index in the cache; they
	// are left out where the API server itself is asked. Defaults to the objects in the namespace of the parent.
	ListOptions func(ctx context.Context, resource Type) []client.ListOption

	// OurChild reports whether an object is the child. It is required where several reconcilers below one root manage
	// children of one kind, unless they are on the two branches of an [IfThen]. It must return the same for desired and
	// for stored children, and must not change the child. Optional with owner references.
	OurChild func(resource Type, child ChildType) bool

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
			field: "ChildObjectManager", verb: "implement", given: !isNil(
				r.ChildObjectManager,
			), merge: r.MergeBeforeUpdate, harmonize: r.HarmonizeImmutableFields,
			sanitize: r.Sanitize, finalizer: r.Finalizer,
		}
		if !r.defaults.given {
			r.ChildObjectManager = r.defaults.manager(r.ChildType, r.SkipOwnerReference)
		}
		r.children = children[T, CT]{
			reconciler: fmt.Sprintf(
				"ChildReconciler %q", r.Name,
			), childType: r.ChildType, childListType: r.ChildListType, skipOwnerReference: r.SkipOwnerReference,
			manager: r.ChildObjectManager, listOptions: r.ListOptions, ourChild: r.OurChild,
			reflectedReasons: r.ReflectedChildErrorReasons,
		}
	})
}

// SetupWithManager validates the reconciler, watches and indexes the child's kind, sets up the object manager and calls
// Setup.
func (r *ChildReconciler[T, CT, CLT]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	r.init()
	return setUp(ctx, mgr, bldr, r.Name, r.Validate, r.children.setup, r.Setup)
}

// Validate checks that the fields fit together and, when ctx asks for recursion, the object manager.
func (r *ChildReconciler[T, CT, CLT]) Validate(ctx context.Context) error {
	r.init()
	problems := problems{}
	if r.DesiredChild == nil {
		problems.add("ChildReconciler %q must implement DesiredChild", r.Name)
	}
	if r.ReflectChildStatusOnParentWithError == nil {
		problems.add(
			"ChildReconciler %q must implement ReflectChildStatusOnParent or ReflectChildStatusOnParentWithError", r.Name,
		)
	}
	reconciler := r.children.reconciler
	r.children.validate(&problems, reconciler)
	r.defaults.validate(&problems, reconciler)
	problems.kind(reconciler, "ChildType", r.ChildType)
	problems.kind(reconciler, "ChildListType", r.ChildListType)
	problems.listOf(reconciler, "ChildListType", r.ChildListType, r.ChildType)
	problems.nested(ctx, r.ChildObjectManager, "ChildReconciler %q must have a valid ChildObjectManager", r.Name)
	r.children.declare(ctx, &problems, r, "")
	return problems.err()
}

// Reconcile looks the child up, brings it to its desired state and reflects it on the parent. The result is always
// empty.
func (r *ChildReconciler[T, CT, CLT]) Reconcile(ctx context.Context, resource T) (Result, error) {
	r.init()
	return step.Run(ctx, r.node, resource, r.reconcile)
}

//nolint:unparam // the empty result is part of what a step returns
func (r *ChildReconciler[T, CT, CLT]) reconcile(ctx context.Context, parent T) (Result, error) {
	known, err := r.children.list(ctx, parent)
	if err != nil {
		return Result{}, err
	}
	desiredChild := func() (CT, error) { return r.DesiredChild(ctx, parent) }
	if r.children.mustLookTwice(parent, known) {
		desiredChild = sync.OnceValues(desiredChild)
		if wantsNone(parent, desiredChild) {
			if known, err = r.children.lookTwice(ctx, parent, known); err != nil {
				return Result{}, err
			}
		}
	}
	outcome, err := r.children.manage(ctx, parent, known, desiredChild)
	if err != nil || outcome.skip {
		return Result{}, err
	}
	return Result{}, r.ReflectChildStatusOnParentWithError(ctx, parent, outcome.child, outcome.err)
}

func wantsNone[T, CT client.Object](parent T, desiredChild func() (CT, error)) bool {
	if parent.GetDeletionTimestamp() != nil {
		return true
	}
	desired, err := desiredChild()
	return err == nil && isNil(desired)
}
