// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/graph"
	"trueup.dev/internal/engine/step"
	"trueup.dev/internal/objects/empty"
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

var _ subReconciler = (*ChildSetReconciler[client.Object, client.Object, client.ObjectList])(nil)

// ChildSetReconciler manages a set of objects of one kind for the reconciled resource. It works like a
// [ChildReconciler] for each child. Desired and existing children are matched by the id that IdentifyChild returns, and
// then by name: a child whose id another client has changed is repaired. They are managed in the order of their ids. If
// a child fails, the others are managed, and the errors are joined.
//
// If a test calls the reconciler directly, as table tests do, an error that is not from the API server stops it, and
// the result has no failed children: users' tests expect this.
//
// RBAC, with the group and the plural of the children's kind:
//
//	// +kubebuilder:rbac:groups=<group>,resources=<resource>,verbs=get;list;watch;create;update;patch;delete
//
// On clusters that check who may block a deletion, owner references also require permission to update the finalizers of
// the parent:
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

	// Finalizer is added to the parent before any child is created and removed when no child exists. It implies
	// SkipOwnerReference. It must be unique and stable, see [WithFinalizer]. Optional.
	Finalizer string

	// SkipOwnerReference creates the children without owner references. OurChild and ListOptions are then required.
	// Defaults to false.
	SkipOwnerReference bool

	// Setup registers additional watches and indexes. Optional.
	Setup func(ctx context.Context, mgr Manager, bldr *Builder) error

	// DesiredChildren returns the desired children. Existing children that it does not return are deleted. If it
	// returns the error [OnlyReconcileChildStatus], no child is changed. It is not called for a parent that is being
	// deleted: then no child is desired. Required.
	DesiredChildren func(ctx context.Context, resource Type) ([]ChildType, error)

	// ChildObjectManager creates, updates and deletes the children. Either ChildObjectManager or MergeBeforeUpdate is
	// required. With MergeBeforeUpdate, the reconciler uses an [UpdatingObjectManager].
	ChildObjectManager ObjectManager[ChildType]

	// MergeBeforeUpdate, HarmonizeImmutableFields and Sanitize set the fields of the same names of an
	// [UpdatingObjectManager]. They replace ChildObjectManager.
	MergeBeforeUpdate        func(current, desired ChildType)
	HarmonizeImmutableFields func(current, desired ChildType)
	Sanitize                 func(child ChildType) any

	// ReflectChildrenStatusOnParent updates the status of the parent in memory from the children. In a controller, it is
	// called once in each request that could list the children: also for a parent that is being deleted, if a child has
	// failed, and if the desired children are unknown. ReflectChildrenStatusOnParent or
	// ReflectChildrenStatusOnParentWithError is required. If both are set, the latter is used.
	ReflectChildrenStatusOnParent func(ctx context.Context, parent Type, result ChildSetResult[ChildType])

	// ReflectChildrenStatusOnParentWithError is like ReflectChildrenStatusOnParent and can return an error.
	ReflectChildrenStatusOnParentWithError func(ctx context.Context, parent Type, result ChildSetResult[ChildType]) error

	// ReflectedChildErrorReasons are the reasons of API errors that are reflected on the parent and not returned. They,
	// and the default, are the same as in a [ChildReconciler]. An empty, non-nil slice means no reasons.
	ReflectedChildErrorReasons []metav1.StatusReason

	// ReflectChildErrorsAfter is the number of failed attempts in a row after which any error of a request about a child
	// is reflected and not returned, as in a [ChildReconciler]. Defaults to 0: never.
	ReflectChildErrorsAfter int

	// ListOptions restrict the list in which children are searched. Field selectors need an index in the cache. They
	// are omitted from lists that the API server answers. Defaults to the namespace of the parent.
	ListOptions func(ctx context.Context, resource Type) []client.ListOption

	// OurChild reports whether an object is a child of this set. It is required if several reconcilers below one root
	// manage children of the same kind. It must not change the child. Optional with owner references.
	OurChild func(resource Type, child ChildType) bool

	// IdentifyChild returns the id of a child, often the value of a label or annotation. A desired child and an
	// existing child with the same id correspond. Ids of desired children must be unique and must not be empty.
	// Existing children without an id, or with one that is not desired, are deleted if this controller made them or
	// OurChild accepts them. It must not change the child. Required.
	IdentifyChild func(child ChildType) string

	// Adopt reports whether an object of a desired name that has no controller becomes a child: it gets the parent as
	// its controller, and is then updated. It is called for a desired child that does not exist. Without it, and for
	// objects that another controller owns, the error is AlreadyExists. Events: Normal Adopted, Warning AdoptionFailed.
	// Cannot be combined with SkipOwnerReference. Defaults to no adoption.
	Adopt func(ctx context.Context, parent Type, object ChildType) bool

	// Release reports whether a child that is no longer desired is kept, without the parent as its owner, and not
	// deleted. It is not called for a parent that is being deleted. Events: Normal Released, Warning ReleaseFailed.
	// Cannot be combined with SkipOwnerReference. Defaults to true for adopted children, and to false for others.
	Release func(ctx context.Context, parent Type, child ChildType) bool

	lazyInit sync.Once
	children children[Type, ChildType]
	defaults shorthand[ChildType]
	node     step.Node
	// reconciler manages the set. If Finalizer is set, it is wrapped in a WithFinalizer.
	reconciler SubReconciler[Type]
}

// ChildSetResult is the result of managing a set of children.
type ChildSetResult[T client.Object] struct {
	// Children is sorted by id.
	Children []ChildSetPartialResult[T]
	// Err is the error of DesiredChildren, or of its ids, or nil. With it, no child was reconciled.
	Err error
}

// ChildSetPartialResult is the result of managing one child of a set.
type ChildSetPartialResult[T client.Object] struct {
	// Id is the id of the child.
	Id string
	// Child is the child in the API server. It is nil if the child does not exist or was deleted. If Err is not nil, it
	// may not have the desired state.
	Child T
	// Err is nil, or says why the child may not have the desired state. Reflected errors are retried as for a
	// [ChildReconciler]; others are also returned by the reconciler. It is [ErrChildNotReconciled] if the child was not
	// tried.
	Err error
}

// ErrChildNotReconciled is the error of a child of a set that was not tried, because the desired children are unknown
// or the request has ended.
var ErrChildNotReconciled = errors.New("the child was not reconciled")

// AggregateError returns Err and the errors of all children as one error, or nil if there is none.
func (r *ChildSetResult[T]) AggregateError() error {
	errs := []error{}
	if r.Err != nil {
		errs = append(errs, r.Err)
	}
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
			field: "ChildObjectManager", verb: "implement",
			given: !nilcheck.IsNilPointer(r.ChildObjectManager), merge: r.MergeBeforeUpdate,
			harmonize: r.HarmonizeImmutableFields, sanitize: r.Sanitize,
		}
		if !r.defaults.given {
			r.ChildObjectManager = r.defaults.manager(r.ChildType, r.SkipOwnerReference)
		}
		r.children = children[T, CT]{
			reconciler: fmt.Sprintf("ChildSetReconciler %q", r.Name), identify: r.IdentifyChild,
			childType: r.ChildType, childListType: r.ChildListType, skipOwnerReference: r.SkipOwnerReference,
			manager: r.ChildObjectManager, listOptions: r.ListOptions, ourChild: r.OurChild,
			finalizer: r.Finalizer,
			reflects:  reflectedErrorsOf{reasons: r.ReflectedChildErrorReasons, attempts: r.ReflectChildErrorsAfter},
			adopts:    r.Adopt, releases: r.Release,
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
	return setUp(ctx, mgr, bldr, r)
}

// Validate checks the combination of fields. If ctx requests recursion, it also validates the object manager.
func (r *ChildSetReconciler[T, CT, CLT]) Validate(ctx context.Context) error { return validate(ctx, r) }

// DescribeTo implements [graph.Describer].
func (r *ChildSetReconciler[T, CT, CLT]) DescribeTo(n *graph.Node) { describeTo(n, r) }

func (r *ChildSetReconciler[T, CT, CLT]) describe(d *description) {
	r.init()
	d.is("ChildSetReconciler", r.Name)
	d.require(r.DesiredChildren != nil, "must implement DesiredChildren")
	d.require(r.ReflectChildrenStatusOnParentWithError != nil,
		"must implement ReflectChildrenStatusOnParent or ReflectChildrenStatusOnParentWithError")
	d.check(func(_ context.Context, problems *problems) { r.children.validate(problems, d.label) })
	d.require(r.IdentifyChild != nil, "must implement IdentifyChild")
	r.children.describe(d, r, r.defaults)
	d.setsUp(r.Setup)
}

// Reconcile finds the children, brings each to its desired state and updates the status of the parent in memory.
func (r *ChildSetReconciler[T, CT, CLT]) Reconcile(ctx context.Context, resource T) (Result, error) {
	r.init()
	return step.Run(ctx, r.node, resource, func(ctx context.Context, parent T) (Result, error) {
		candidates, err := r.children.list(ctx, parent)
		if err == nil && r.children.needsLiveList(ctx, parent, candidates.known) {
			candidates, err = r.children.addUncached(ctx, parent, candidates)
		}
		if err != nil {
			return Result{}, err
		}
		ctx = stashKnownChildren(ctx, candidates.known)
		return r.reconciler.Reconcile(context.WithValue(ctx, strayChildrenKey{}, candidates.strays), parent)
	})
}

func (r *ChildSetReconciler[T, CT, CLT]) reconcile(ctx context.Context, parent T) error {
	known := knownChildren[CT](ctx)
	desired, onlyStatus, err := r.desiredByID(ctx, parent)
	if err != nil {
		if !inController(ctx) {
			return err
		}
		return joinErrors(err, r.ReflectChildrenStatusOnParentWithError(ctx, parent, r.untried(known, err)))
	}
	deleting := MustRemove(ctx, parent)
	result := ChildSetResult[CT]{}
	err = r.eachChild(ctx, parent, r.pair(ctx, known, desired), desired, onlyStatus, &result)
	if err == nil && len(known) == 0 && (deleting || len(desired) == 0 && !onlyStatus) {
		// No child exists, so an object manager with a finalizer can remove it.
		var none CT
		_, err = r.ChildObjectManager.Manage(ctx, parent, empty.Like(r.ChildType), none)
	}
	return joinErrors(err, r.ReflectChildrenStatusOnParentWithError(ctx, parent, result))
}

// pair returns the known children by id. If none has the id of a desired child, an object with its name is that child:
// another client has changed the label that IdentifyChild reads, or another version of the controller wrote other ids.
// With generated names, such an object cannot be told from one whose id is no longer desired, and is not paired.
func (r *ChildSetReconciler[T, CT, CLT]) pair(
	ctx context.Context, known []CT, desired map[string]CT,
) map[string][]CT {
	byID := map[string][]CT{}
	for _, child := range known {
		id := r.IdentifyChild(child)
		byID[id] = append(byID[id], child)
	}
	if r.SkipOwnerReference {
		return byID
	}
	strays, _ := ctx.Value(strayChildrenKey{}).([]CT)
	for _, id := range slices.Sorted(maps.Keys(desired)) {
		if len(byID[id]) > 0 {
			continue
		}
		isWanted := func(obj CT) bool { return isNamed(obj, desired[id]) }
		if at := slices.IndexFunc(known, isWanted); at >= 0 {
			other := r.IdentifyChild(known[at])
			if byID[other] = slices.DeleteFunc(byID[other], isWanted); len(byID[other]) == 0 {
				delete(byID, other)
			}
			byID[id] = []CT{known[at]}
		} else if at := slices.IndexFunc(strays, isWanted); at >= 0 {
			byID[id] = []CT{strays[at]}
		}
	}
	return byID
}

// untried returns the result if no child is managed, because the desired ones are unknown.
func (r *ChildSetReconciler[T, CT, CLT]) untried(known []CT, err error) ChildSetResult[CT] {
	result := ChildSetResult[CT]{Err: err}
	for _, child := range known {
		result.Children = append(result.Children, ChildSetPartialResult[CT]{
			Id: r.IdentifyChild(child), Child: r.children.private(child), Err: ErrChildNotReconciled,
		})
	}
	slices.SortStableFunc(result.Children, func(a, b ChildSetPartialResult[CT]) int { return strings.Compare(a.Id, b.Id) })
	return result
}

// eachChild manages the children in the order of their ids and appends the outcomes to result. In a controller, the
// error of one child does not stop the others. Users' tests expect that an error that the API server did not return
// stops them, and that failed children have no outcome.
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

	reportsAll := inController(ctx)
	errs := []error{}
	for _, id := range ids {
		if err := interrupted(ctx); err != nil && reportsAll {
			if len(errs) == 0 || !errors.Is(errs[len(errs)-1], context.Cause(ctx)) {
				errs = append(errs, err)
			}
			result.Children = append(result.Children, r.failed(id, known[id], ErrChildNotReconciled))
			continue
		}
		_, err := step.Run(ctx, step.Node{Name: id, Item: true}, parent, func(ctx context.Context, parent T) (Result, error) {
			if onlyStatus {
				stepRunFrom(ctx).noteReadiness(known[id][0])
				result.Children = append(result.Children, ChildSetPartialResult[CT]{
					Id: id, Child: r.children.private(known[id][0]),
				})
				return Result{}, nil
			}
			candidates := found[CT]{known: known[id]}
			outcome, err := r.children.manage(ctx, parent, candidates, func() (CT, error) { return desired[id], nil })
			if err == nil && !outcome.skip {
				result.Children = append(result.Children, ChildSetPartialResult[CT]{Id: id, Child: outcome.child, Err: outcome.err})
			}
			return Result{}, err
		})
		if err != nil {
			errs = append(errs, err)
			if reportsAll {
				result.Children = append(result.Children, r.failed(id, known[id], err))
			} else if apierrs.ReasonForError(err) == metav1.StatusReasonUnknown {
				break
			}
		}
	}
	return joinErrors(errs...)
}

// failed returns the outcome of a child that was not brought to its desired state.
func (r *ChildSetReconciler[T, CT, CLT]) failed(id string, known []CT, err error) ChildSetPartialResult[CT] {
	partial := ChildSetPartialResult[CT]{Id: id, Err: err}
	if len(known) > 0 {
		partial.Child = r.children.private(known[0])
	}
	return partial
}

// desiredByID returns the desired children by id. The second value reports whether only the status is reconciled.
func (r *ChildSetReconciler[T, CT, CLT]) desiredByID(ctx context.Context, parent T) (map[string]CT, bool, error) {
	if MustRemove(ctx, parent) {
		// An error must not keep the children, and with them the parent, from being deleted.
		return nil, false, nil
	}
	desired, err := r.DesiredChildren(ctx, parent)
	if errors.Is(err, OnlyReconcileChildStatus) {
		inventoryFrom(ctx).keep()
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

// strayChildrenKey holds objects that the parent controls and OurChild does not accept.
type strayChildrenKey struct{}

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

// RetrieveKnownChildren returns copies of the children that a [ChildSetReconciler] found for the parent, in no
// particular order. Outside the functions of a child set it returns nil.
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
