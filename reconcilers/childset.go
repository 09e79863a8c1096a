// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/step"
	"trueup.dev/validation"
)

var (
	_ SubReconciler[client.Object] = (*ChildSetReconciler[client.Object, client.Object, client.ObjectList])(nil)
	_ validation.Validator         = (*ChildSetReconciler[client.Object, client.Object, client.ObjectList])(nil)
)

// ChildSetReconciler manages any number of objects of one kind on behalf of the reconciled resource. It is a
// [ChildReconciler] for each child: desired and existing children are matched by the id that IdentifyChild reads from
// them, and managed in the order of their ids. The first child that fails stops the rest.
//
// RBAC, with the group and the plural of the children's kind:
//
//	// +kubebuilder:rbac:groups=<group>,resources=<resource>,verbs=get;list;watch;create;update;patch;delete
//
// and, for owner references on clusters that check who may block a deletion, with those of the parent:
//
//	// +kubebuilder:rbac:groups=<group>,resources=<resource>/finalizers,verbs=update
type ChildSetReconciler[Type, ChildType client.Object, ChildListType client.ObjectList] struct {
	// Name identifies this reconciler in logs. Defaults to `<ChildType>ChildSetReconciler`.
	Name string

	// ChildType is the kind of the children. Defaults to the type parameter; required for unstructured objects and duck
	// types.
	ChildType ChildType

	// ChildListType is the list kind of the children. Defaults to the type parameter; required for unstructured objects
	// and duck types.
	ChildListType ChildListType

	// Finalizer is put on the parent before any child is created, and stays until the last child is gone. It implies
	// SkipOwnerReference. Optional. It has to be unique and stable, see [WithFinalizer].
	Finalizer string

	// SkipOwnerReference leaves the children without owner references. OurChild and ListOptions are then required.
	// Defaults to false.
	SkipOwnerReference bool

	// Setup registers further watches and indexes. Optional.
	Setup func(ctx context.Context, mgr Manager, bldr *Builder) error

	// DesiredChildren returns the children as they should be; existing ones that are not among them are deleted.
	// [OnlyReconcileChildStatus] as the error leaves all children alone. It is not called for a parent that is being
	// deleted, when no child is desired. Required.
	DesiredChildren func(ctx context.Context, resource Type) ([]ChildType, error)

	// ChildObjectManager creates, updates and deletes the children. Either this is required or MergeBeforeUpdate, which
	// makes it an [UpdatingObjectManager].
	ChildObjectManager ObjectManager[ChildType]

	// MergeBeforeUpdate, HarmonizeImmutableFields and Sanitize are the fields of an [UpdatingObjectManager] of the same
	// names, to be used instead of ChildObjectManager.
	MergeBeforeUpdate        func(current, desired ChildType)
	HarmonizeImmutableFields func(current, desired ChildType)
	Sanitize                 func(child ChildType) any

	// ReflectChildrenStatusOnParent updates the status of the parent, in memory, with what became of the children. It is
	// called once, also for a parent that is being deleted and when a child has failed; that one and those after it are
	// then not in the result. This or ReflectChildrenStatusOnParentWithError is required; the latter is used when both are
	// there.
	ReflectChildrenStatusOnParent func(ctx context.Context, parent Type, result ChildSetResult[ChildType])

	// ReflectChildrenStatusOnParentWithError is ReflectChildrenStatusOnParent that can fail.
	ReflectChildrenStatusOnParentWithError func(ctx context.Context, parent Type, result ChildSetResult[ChildType]) error

	// ReflectedChildErrorReasons are the API errors that are reflected on the parent instead of being returned. Defaults
	// to AlreadyExists, Forbidden and Invalid; an empty slice that is not nil means none. They are retried as those of a
	// [ChildReconciler] are.
	ReflectedChildErrorReasons []metav1.StatusReason

	// ListOptions select the objects among which to look for children. Field selectors need an index in the cache; they
	// are left out where the API server itself is asked. Defaults to the objects in the namespace of the parent.
	ListOptions func(ctx context.Context, resource Type) []client.ListOption

	// OurChild reports whether an object is a child of this set. It is required where several reconcilers below one root
	// manage children of one kind, and must not change the child. Optional with owner references.
	OurChild func(resource Type, child ChildType) bool

	// IdentifyChild returns the id by which a desired child and the existing one correspond, often the value of a label or
	// annotation. Ids of desired children must be unique and not empty; existing children without an id are deleted. It
	// must not change the child. Required.
	IdentifyChild func(child ChildType) string

	lazyInit sync.Once
	children children[Type, ChildType]
	defaults shorthand[ChildType]
	node     step.Node
	// reconciler manages the set, with the finalizer around it when there is one.
	reconciler SubReconciler[Type]
}

// ChildSetResult is what became of the children of a set.
type ChildSetResult[T client.Object] struct {
	// Children is in the order of ids.
	Children []ChildSetPartialResult[T]
}

// ChildSetPartialResult is what became of one child of a set.
type ChildSetPartialResult[T client.Object] struct {
	// Id is the id of the child.
	Id string
	// Child is as the API server has it, nil when it does not exist or was deleted.
	Child T
	// Err is one of the reflected errors.
	Err error
}

// AggregateError returns the errors of all children as one, and nil when there is none.
func (r *ChildSetResult[T]) AggregateError() error {
	errs := []error{}
	for _, child := range r.Children {
		if child.Err != nil {
			errs = append(errs, child.Err)
		}
	}
	return utilerrors.NewAggregate(errs)
}

func (r *ChildSetReconciler[T, CT, CLT]) init() {
	r.lazyInit.Do(func() {
		defaultChildren(&r.ChildType, &r.ChildListType, &r.Name, "ChildSetReconciler", &r.ReflectedChildErrorReasons)
		if reflect := r.ReflectChildrenStatusOnParent; reflect != nil && r.ReflectChildrenStatusOnParentWithError == nil {
			r.ReflectChildrenStatusOnParentWithError = func(ctx context.Context, parent T, result ChildSetResult[CT]) error {
				reflect(ctx, parent, result)
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
			), merge: r.MergeBeforeUpdate, harmonize: r.HarmonizeImmutableFields, sanitize: r.Sanitize,
		}
		if !r.defaults.given {
			r.ChildObjectManager = r.defaults.manager(r.ChildType, r.SkipOwnerReference)
		}
		r.children = children[T, CT]{
			reconciler: fmt.Sprintf(
				"ChildSetReconciler %q", r.Name,
			), byID: true, childType: r.ChildType, childListType: r.ChildListType, skipOwnerReference: r.SkipOwnerReference,
			manager: r.ChildObjectManager, listOptions: r.ListOptions, ourChild: r.OurChild,
			reflectedReasons: r.ReflectedChildErrorReasons,
		}
		r.reconciler = &SyncReconciler[T]{Name: "Children", Sync: r.reconcile, SyncDuringFinalization: true}
		if r.Finalizer != "" {
			r.reconciler = &WithFinalizer[T]{
				Finalizer: r.Finalizer, Reconciler: r.reconciler, ReadyToClearFinalizer: noKnownChildren[T, CT],
			}
		}
	})
}

// SetupWithManager validates the reconciler, watches and indexes the children's kind, sets up the object manager and
// calls Setup.
func (r *ChildSetReconciler[T, CT, CLT]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	r.init()
	return setUp(ctx, mgr, bldr, r.Name, r.Validate, r.children.setup, r.Setup)
}

// Validate checks that the fields fit together and, when ctx asks for recursion, the object manager.
func (r *ChildSetReconciler[T, CT, CLT]) Validate(ctx context.Context) error {
	r.init()
	problems := problems{}
	if r.DesiredChildren == nil {
		problems.add("ChildSetReconciler %q must implement DesiredChildren", r.Name)
	}
	if r.ReflectChildrenStatusOnParentWithError == nil {
		problems.add(
			"ChildSetReconciler %q must implement ReflectChildrenStatusOnParent or ReflectChildrenStatusOnParentWithError",
			r.Name,
		)
	}
	reconciler := r.children.reconciler
	r.children.validate(&problems, reconciler)
	if r.IdentifyChild == nil {
		problems.add("ChildSetReconciler %q must implement IdentifyChild", r.Name)
	}
	r.defaults.validate(&problems, reconciler)
	problems.kind(reconciler, "ChildType", r.ChildType)
	problems.kind(reconciler, "ChildListType", r.ChildListType)
	problems.listOf(reconciler, "ChildListType", r.ChildListType, r.ChildType)
	problems.nested(ctx, r.ChildObjectManager, "ChildSetReconciler %q must have a valid ChildObjectManager", r.Name)
	r.children.declare(ctx, &problems, r, r.Finalizer)
	return problems.err()
}

// Reconcile looks the children up, brings each to its desired state and reflects them on the parent.
func (r *ChildSetReconciler[T, CT, CLT]) Reconcile(ctx context.Context, resource T) (Result, error) {
	r.init()
	return step.Run(ctx, r.node, resource, func(ctx context.Context, parent T) (Result, error) {
		known, err := r.children.list(ctx, parent)
		if err == nil && r.children.mustLookTwice(parent, known) {
			known, err = r.children.lookTwice(ctx, parent, known)
		}
		if err != nil {
			return Result{}, err
		}
		return r.reconciler.Reconcile(stashKnownChildren(ctx, known), parent)
	})
}

func (r *ChildSetReconciler[T, CT, CLT]) reconcile(ctx context.Context, parent T) error {
	known := knownChildren[CT](ctx)
	desired, onlyStatus, err := r.desiredByID(ctx, parent)
	if err != nil {
		return err
	}
	deleting := parent.GetDeletionTimestamp() != nil
	knownByID := map[string][]CT{}
	for _, child := range known {
		id := r.IdentifyChild(child)
		knownByID[id] = append(knownByID[id], child)
	}

	result := ChildSetResult[CT]{}
	err = r.eachChild(ctx, parent, knownByID, desired, onlyStatus, &result)
	if err == nil && len(known) == 0 && (deleting || len(desired) == 0 && !onlyStatus) {
		// With no child left, an object manager that holds a finalizer can let go of it.
		var none CT
		_, err = r.ChildObjectManager.Manage(ctx, parent, blankLike(r.ChildType), none)
	}
	return joinLoud(err, r.ReflectChildrenStatusOnParentWithError(ctx, parent, result))
}

// eachChild manages the children in the order of their ids and adds to result what became of them.
func (r *ChildSetReconciler[T, CT, CLT]) eachChild(
	ctx context.Context, parent T, known map[string][]CT, desired map[string]CT, onlyStatus bool,
	result *ChildSetResult[CT],
) error {
	ids := slices.Collect(maps.Keys(known))
	for id := range desired {
		if _, ok := known[id]; !ok {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)

	for _, id := range ids {
		_, err := step.Run(ctx, step.Node{Name: id}, parent, func(ctx context.Context, parent T) (Result, error) {
			if onlyStatus {
				result.Children = append(result.Children, ChildSetPartialResult[CT]{
					Id: id, Child: r.children.private(known[id][0]),
				})
				return Result{}, nil
			}
			outcome, err := r.children.manage(ctx, parent, known[id], func() (CT, error) { return desired[id], nil })
			if err == nil && !outcome.skip {
				result.Children = append(result.Children, ChildSetPartialResult[CT]{Id: id, Child: outcome.child, Err: outcome.err})
			}
			return Result{}, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// desiredByID returns the desired children by their ids, and true when children are not to be managed.
func (r *ChildSetReconciler[T, CT, CLT]) desiredByID(ctx context.Context, parent T) (map[string]CT, bool, error) {
	if parent.GetDeletionTimestamp() != nil {
		// An error must not keep the children, and with them the parent.
		return nil, false, nil
	}
	desired, err := r.DesiredChildren(ctx, parent)
	if errors.Is(err, OnlyReconcileChildStatus) {
		return nil, true, nil
	}
	if err != nil {
		step.About(ctx, err, typeName(r.ChildType))
		return nil, false, err
	}
	byID := make(map[string]CT, len(desired))
	for _, child := range desired {
		id := r.IdentifyChild(child)
		if id == "" {
			return nil, false, errors.New("desired child id may not be empty")
		}
		if _, ok := byID[id]; ok {
			return nil, false, fmt.Errorf("duplicate child id found: %s", id)
		}
		byID[id] = child
	}
	return byID, false, nil
}

type knownChildrenKey struct{}

func stashKnownChildren[CT client.Object](ctx context.Context, known []CT) context.Context {
	return context.WithValue(ctx, knownChildrenKey{}, known)
}

func knownChildren[CT client.Object](ctx context.Context) []CT {
	known, _ := ctx.Value(knownChildrenKey{}).([]CT)
	return known
}

func noKnownChildren[T, CT client.Object](ctx context.Context, _ T) bool {
	return len(knownChildren[CT](ctx)) == 0
}

// RetrieveKnownChildren returns copies of the children that a [ChildSetReconciler] has found for the parent, in no
// particular order. It is for use in the functions of a child set, and returns nil elsewhere.
func RetrieveKnownChildren[T client.Object](ctx context.Context) []T {
	known, ok := ctx.Value(knownChildrenKey{}).([]T)
	if !ok {
		return nil
	}
	copies := make([]T, len(known))
	for i := range known {
		copies[i] = known[i].DeepCopyObject().(T)
	}
	return copies
}
