// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/graph"
	"trueup.dev/internal/engine/guard"
	"trueup.dev/internal/engine/ownership"
	"trueup.dev/internal/engine/step"
	"trueup.dev/internal/objects/empty"
	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/observe"
)

// children is the shared implementation of [ChildReconciler] and [ChildSetReconciler]. It finds the children of a
// parent and brings one of them to its desired state.
type children[Type, ChildType client.Object] struct {
	// reconciler is the name of the reconciler in messages.
	reconciler         string
	childType          ChildType
	childListType      client.ObjectList
	skipOwnerReference bool
	manager            ObjectManager[ChildType]
	listOptions        func(ctx context.Context, resource Type) []client.ListOption
	ourChild           func(resource Type, child ChildType) bool
	// reflects decides which errors are reflected on the parent.
	reflects reflectedErrorsOf
	// finalizer is held on the parent while children exist, or "".
	finalizer string
	// adopts and releases are the fields Adopt and Release, or nil.
	adopts, releases func(ctx context.Context, resource Type, child ChildType) bool
	// by is the reconciler, and declared has the reconcilers below the same root. It is nil without a manager.
	by       any
	declared *declarations
	// identify returns the id of a child, or is nil if the user identifies no child by an id.
	identify func(child ChildType) string

	warnOnce sync.Once
	// warned maps parents to the objects in the last warning.
	warned *cache.Expiring
	// managed are objects that have been the child.
	managed perObject[struct{}]
	// origins are the origins of objects that the cache has without managed fields.
	origins perObject[versionOrigin]

	// The following fields are set during setup with a manager. They affect the cost of lists and the watches, not the
	// outcome.

	isSetUp bool
	// indexed is the index by owner. It is empty until the index is registered.
	indexed ownerIndex
	// shared is the kind of listed objects that are shared with the cache and must not be changed.
	shared schema.GroupVersionKind
	// tracked reports whether changes of children enqueue the parent through the tracker, because children have no
	// owner reference.
	tracked bool
}

// defaultChildren sets the defaults of fields that are not set.
func defaultChildren[CT client.Object, CLT client.ObjectList](
	childType *CT, listType *CLT, name *string, suffix string, reflectedReasons *[]metav1.StatusReason,
) {
	if nilcheck.IsNilPointer(*childType) {
		*childType = newEmpty[CT]()
	}
	if nilcheck.IsNilPointer(*listType) {
		*listType = newEmpty[CLT]()
	}
	if *name == "" {
		*name = typeName(*childType) + suffix
	}
	if *reflectedReasons == nil {
		*reflectedReasons = defaultReflectedReasons
	}
}

// validate adds a problem for each missing field that is required to find children without an owner reference.
func (c *children[T, CT]) validate(problems *problems, reconciler string) {
	if c.skipOwnerReference && c.ourChild == nil {
		problems.add("%s must implement OurChild since owner references are not used", reconciler)
	}
	if c.skipOwnerReference && c.listOptions == nil {
		problems.add("%s must implement ListOptions since owner references are not used", reconciler)
	}
	if c.skipOwnerReference && (c.adopts != nil || c.releases != nil) {
		problems.add("%s must not implement Adopt or Release since owner references are not used", reconciler)
	}
	if _, ok := any(c.childType).(*metav1.PartialObjectMetadata); ok {
		problems.add("%s must not have the ChildType PartialObjectMetadata, which has no spec: use the type of the child, "+
			"or unstructured.Unstructured", reconciler)
	}
	if c.reflects.attempts < 0 {
		problems.add("%s must not set a negative ReflectChildErrorsAfter, got %d", reconciler, c.reflects.attempts)
	}
}

// declare claims the children and their finalizer for the reconciler by. ListOptions can identify children like
// OurChild. Children without an owner reference are always identified.
func (c *children[T, CT]) declare(ctx context.Context, problems *problems, by any) {
	c.by = by
	problems.requests(ctx, c.reconciler, false)
	if config, err := RetrieveConfig(ctx); err == nil && c.skipOwnerReference && config.divides(c.childType) {
		problems.add("%s must not skip owner references: the kind is one of the Kinds of Config.Shard, and only children "+
			"with an owner reference move with their parent", c.reconciler)
	}
	if declared := declarationsFrom(ctx); declared != nil {
		c.declared = declared
	}
	if !c.skipOwnerReference {
		declareChildren(ctx, problems, by, c.reconciler, c.childType, c.ourChild != nil || c.listOptions != nil)
	}
	declareFinalizer(ctx, problems, by, c.reconciler, c.heldFinalizer())
}

// describe describes the part that reconcilers of children share, for the reconciler by.
func (c *children[T, CT]) describe(d *description, by any, defaults shorthand[CT]) {
	d.check(func(ctx context.Context, problems *problems) {
		defaults.validate(problems, d.label)
		problems.kind(d.label, "ChildType", c.childType)
		problems.kind(d.label, "ChildListType", c.childListType)
		problems.listOf(d.label, "ChildListType", c.childListType, c.childType)
		problems.nested(ctx, c.manager, "%s must have a valid ChildObjectManager", d.label)
		c.declare(ctx, problems, by)
	})
	d.setsUp(c.setup)
	d.accesses(func(n *graph.Node) {
		if c.skipOwnerReference {
			n.WritesKind(c.childType)
		} else {
			n.OwnsKind(c.childType)
		}
		if c.adopts != nil || c.releases != nil {
			n.Needs(c.childType, "", "patch")
		}
		n.Finalizer(c.heldFinalizer())
		nestManager(n, "ChildObjectManager", c.manager)
	})
}

func (c *children[T, CT]) heldFinalizer() string {
	return cmp.Or(c.finalizer, heldFinalizer(c.manager))
}

// setup watches the children and indexes them by owner.
func (c *children[T, CT]) setup(ctx context.Context, mgr Manager, bldr *Builder) error {
	config, err := RetrieveConfig(ctx)
	if err != nil {
		return err
	}
	c.isSetUp = true
	gvk, err := kindOfChild(config, c.reconciler, c.childType)
	if err != nil {
		return err
	}
	watched := watchable(c.childType, config.Scheme())
	// The tracker holds children without an owner reference and objects that conflict with a child.
	config.watch(mgr, bldr, watched, EnqueueTracked(ctx))
	if c.sharesWith(config) {
		c.shared = gvk
	}
	if config.divides(c.childType) {
		config.guard.Select(watched) // a child of another replica, which is written once, never appears
	}
	form := guard.NewForm(gvk, watched)
	if err := wiringFrom(ctx).add(ctx, config, bldr, form, watched, c.childListType, c.heldFinalizer()); err != nil {
		return err
	}
	if c.skipOwnerReference {
		c.tracked = true
		return c.manager.SetupWithManager(ctx, mgr, bldr)
	}

	config.watchOwned(ctx, mgr, bldr, watched)
	index := ownerIndex{field: ownerIndexField, kind: form}
	if err := config.owners.setUp(ctx, bldr, index, watched); err != nil {
		return err
	}
	c.indexed = index
	return c.manager.SetupWithManager(ctx, mgr, bldr)
}

// outcome is the result of managing a child.
type outcome[CT client.Object] struct {
	// child is nil if it does not exist.
	child CT
	// err is an error to reflect on the parent.
	err error
	// skip reports whether reflecting is skipped.
	skip bool
}

// manageChild brings one child to the state that desiredChild returns. The caller must not reflect a returned error on
// the status of the parent.
func (c *children[T, CT]) manageChild(
	ctx context.Context, parent T, candidates found[CT], desiredChild func() (CT, error),
) (outcome[CT], error) {
	nothing := outcome[CT]{skip: true}
	c.track(ctx, parent, candidates.known...)

	present, terminating := partition(candidates.known, isPresent)

	// Compute the desired child first: until it is known, nothing is deleted.
	deleting, removing := parent.GetDeletionTimestamp() != nil, MustRemove(ctx, parent)
	var desired CT
	if !removing {
		var err error
		desired, err = desiredChild()
		if errors.Is(err, OnlyReconcileChildStatus) {
			inventoryFrom(ctx).keep()
			return outcome[CT]{child: c.private(first(empty.Like(c.childType), present, terminating))}, nil
		}
		if err != nil {
			step.About(ctx, err, typeName(c.childType))
			return nothing, err
		}
	}

	if c.leavesChildren(parent) {
		return nothing, nil
	}
	if err := mustBeNamed(desired); err != nil {
		step.About(ctx, err, typeName(c.childType))
		return nothing, err
	}
	if c.mayBeUnseen(ctx, desired, candidates.known) {
		var err error
		if candidates, err = c.addUncached(ctx, parent, candidates); err != nil {
			return nothing, err
		}
		if c.identify != nil {
			id := c.identify(desired)
			candidates.known, _ = partition(candidates.known, func(obj CT) bool { return c.identify(obj) == id })
		}
		present, terminating = partition(candidates.known, isPresent)
		if len(present) == 0 {
			if err := parentExists(ctx, parent); err != nil {
				return nothing, err
			}
		}
	}
	if stray := slices.IndexFunc(candidates.strays, func(obj CT) bool { return isNamed(obj, desired) }); stray >= 0 {
		if obj := candidates.strays[stray]; isPresent(obj) {
			present = append(slices.Clip(present), obj)
		} else {
			terminating = append(slices.Clip(terminating), obj)
		}
	}
	chosen, err := c.choose(ctx, present, desired, removing)
	if err != nil {
		return nothing, err
	}
	if err := c.deleteExtra(ctx, parent, chosen.extra); err != nil {
		if deleting || !c.reflects.persists(ctx, parent, c.idOf(desired), err) {
			return nothing, err
		}
		inventoryFrom(ctx).keep()
		return outcome[CT]{child: c.private(chosen.child), err: err}, nil
	}
	c.warnUnidentified(ctx, parent, chosen)
	c.reportName(ctx, parent, chosen.child, desired)
	actual := chosen.child
	if nilcheck.IsNilPointer(desired) && len(present) == 0 {
		actual = first(actual, terminating)
	}
	if nilcheck.IsNilPointer(desired) && !exists(actual) && len(candidates.known) > 0 {
		// The known objects were just deleted, so it is too early to manage "nothing", or they are not identified as
		// the child.
		return outcome[CT]{skip: deleting}, nil
	}
	if !nilcheck.IsNilPointer(desired) && !exists(actual) {
		if i := slices.IndexFunc(terminating, func(child CT) bool { return sameName(child, desired) }); i >= 0 {
			logr.FromContextOrDiscard(ctx).Info(
				"waiting until a terminating child of the same name no longer exists", "child", identify(terminating[i]),
			)
			return outcome[CT]{child: c.private(terminating[i])}, nil
		}
	}
	if !nilcheck.IsNilPointer(desired) {
		if err := c.claim(ctx, parent, desired); err != nil {
			return nothing, err
		}
	}

	child, err := c.adoptAndManage(ctx, parent, actual, desired)
	if err == nil && !nilcheck.IsNilPointer(child) {
		c.track(ctx, parent, child)
		c.remember(ctx, child)
		err = c.removeRenamed(ctx, parent, child, chosen.renamed)
	}
	if deleting {
		return nothing, err
	}
	if err == nil {
		if !nilcheck.IsNilPointer(child) {
			inventoryFrom(ctx).declare(ctx, c.childType, child)
		}
		c.reflects.succeeded(ctx, parent, c.idOf(desired))
		return outcome[CT]{child: child}, nil
	}
	inventoryFrom(ctx).keep()
	if reported := c.notForStatus(ctx, parent, desired, err); reported != nil &&
		!c.reflects.persists(ctx, parent, c.idOf(desired), err) {
		return nothing, reported
	}
	return outcome[CT]{child: child, err: err}, nil
}

// idOf returns the id of a desired child of a set, or "".
func (c *children[T, CT]) idOf(desired CT) string {
	if c.identify == nil || nilcheck.IsNilPointer(desired) {
		return ""
	}
	return c.identify(desired)
}

// deleteExtra deletes children until a deletion fails.
func (c *children[T, CT]) deleteExtra(ctx context.Context, parent T, extra []CT) error {
	var none CT
	for _, child := range extra {
		logr.FromContextOrDiscard(ctx).Info("extra child detected", "child", identify(child))
		if _, err := c.manageOne(ctx, parent, child, none); err != nil {
			return err
		}
	}
	return nil
}

// removeRenamed deletes objects that this controller made under other names than the name of the child, which exists.
func (c *children[T, CT]) removeRenamed(ctx context.Context, parent T, child CT, renamed []CT) error {
	if len(renamed) == 0 || nilcheck.IsNilPointer(child) || child.GetDeletionTimestamp() != nil {
		return nil
	}
	gvk, err := RetrieveConfigOrDie(ctx).GroupVersionKindFor(c.childType)
	if err != nil {
		return err
	}
	if c.releases == nil && holdsData(gvk.GroupKind()) {
		c.warn(ctx, parent, renamed, "RenamedChildKept",
			"which may hold data: %s is the child now, delete what is not needed", child.GetName())
		return nil
	}
	return c.deleteExtra(ctx, parent, renamed)
}

// adoptAndManage is manageOne for a child that may exist without an owner, or where the lists of children do not show
// it.
func (c *children[T, CT]) adoptAndManage(ctx context.Context, parent T, actual, desired CT) (CT, error) {
	if nilcheck.IsNilPointer(desired) || exists(actual) {
		return c.manageOne(ctx, parent, actual, desired)
	}
	actual, err := c.adopt(ctx, parent, desired)
	if err != nil {
		var none CT
		return none, err
	}
	config := RetrieveConfigOrDie(ctx)
	mayHide := c.listOptions != nil || config.lacks(c.childType)
	if exists(actual) || config.cache == nil && !mayHide {
		return c.manageOne(ctx, parent, actual, desired)
	}
	if mayHide {
		if hidden, found := c.hidden(ctx, parent, desired); found {
			actual = hidden
		}
	}
	requested := desired.DeepCopyObject().(CT) // managers may change it
	child, err := c.manageOne(ctx, parent, actual, desired)
	if config.cache != nil && apierrs.IsAlreadyExists(err) {
		// The cache may leave out the child that was created before.
		if hidden, found := c.hidden(ctx, parent, requested); found {
			return c.manageOne(ctx, parent, hidden, requested)
		}
	}
	return child, err
}

// hidden returns the object of the desired name if the parent controls it. It is called if lists do not show the
// object: the cache leaves it out, or the user's ListOptions do, because another client has changed its labels.
func (c *children[T, CT]) hidden(ctx context.Context, parent T, desired CT) (CT, bool) {
	config := RetrieveConfigOrDie(ctx)
	existing := empty.Like(c.childType)
	if c.skipOwnerReference || config.APIReader == nil || desired.GetName() == "" {
		return existing, false
	}
	err := config.APIReader.Get(ctx, client.ObjectKeyFromObject(desired), existing)
	if err != nil || !metav1.IsControlledBy(existing, parent) || existing.GetDeletionTimestamp() != nil {
		return existing, false
	}
	if config.lacks(c.childType) || c.listOptions == nil {
		journalFrom(ctx).NoteUnseen() // its deletion may go unnoticed
	}
	return existing, true
}

// lacks reports whether the cache is known to lack objects like this one.
func (c *Config) lacks(obj client.Object) bool { return c.guard.Selects(obj) || c.divides(obj) }

func (c *children[T, CT]) manageOne(ctx context.Context, parent T, actual, desired CT) (managed CT, err error) {
	if nilcheck.IsNilPointer(desired) && exists(actual) {
		if released, err := c.release(ctx, parent, actual); released || err != nil {
			return managed, err
		}
	}
	managed, err = manageChild(ctx, c.manager, client.Object(parent), actual, desired, handling{
		shared: !c.shared.Empty(),
		// The garbage collector may be removing the owner reference: then the child stays.
		unchanged: !c.skipOwnerReference && c.indexed != (ownerIndex{}) && parent.GetDeletionTimestamp() != nil,
	})
	switch {
	case err == nil:
	case !nilcheck.IsNilPointer(desired):
		step.About(ctx, err, identify(desired))
	case exists(actual):
		step.About(ctx, err, identify(actual))
	}
	return managed, err
}

// leavesChildren reports whether the children of a parent that is being deleted stay.
func (c *children[T, CT]) leavesChildren(parent T) bool {
	return !c.skipOwnerReference && orphans(parent)
}

// mayBeUnseen reports whether a child that the caches lack could be created a second time, because its name is
// generated.
func (c *children[T, CT]) mayBeUnseen(ctx context.Context, desired CT, known []CT) bool {
	return !nilcheck.IsNilPointer(desired) && desired.GetName() == "" && len(known) == 0 &&
		RetrieveConfigOrDie(ctx).cache != nil
}

// claim sets the parent as the owner of a desired child.
func (c *children[T, CT]) claim(ctx context.Context, parent T, desired CT) error {
	if !c.skipOwnerReference {
		if err := controlBy(ctx, parent, desired); err != nil {
			step.About(ctx, err, identify(desired))
			return err
		}
	}
	if !c.accepts(parent, desired) {
		logr.FromContextOrDiscard(ctx).Info(
			"desired child does not match OurChild, it will not be found again", "child", identify(desired),
		)
	}
	return inventoryFrom(ctx).claim(ctx, parent, c.childType, desired, c.heldFinalizer())
}

// notForStatus returns nil if the error from managing a child is reflected on the status of the parent. Otherwise it
// returns the error to report.
func (c *children[T, CT]) notForStatus(ctx context.Context, parent T, desired CT, cause error) error {
	reason := reasonOf(cause)
	if !slices.Contains(c.reflects.reasons, reason) {
		return cause
	}
	if reason != metav1.StatusReasonAlreadyExists || nilcheck.IsNilPointer(desired) {
		noteReflected(ctx, reason, false)
		return nil
	}

	config := RetrieveConfigOrDie(ctx)
	if config.APIReader == nil {
		return cause
	}
	blocker := empty.Like(c.childType)
	key := client.ObjectKey{Namespace: desired.GetNamespace(), Name: blockerName(cause, desired)}
	switch err := config.APIReader.Get(ctx, key, blocker); {
	case apierrs.IsNotFound(err):
		// The conflicting object no longer exists. Retry instead of reporting a name conflict.
		return cause
	case err != nil:
		return errors.Join(cause, err)
	}
	if c.isOwned(parent, blocker) {
		// The object was created for this parent, and the cache does not have it yet.
		return cause
	}
	logr.FromContextOrDiscard(ctx).Info("unable to reconcile child, not owned", "child", identify(blocker))
	reportNameTaken(ctx, blocker, cause)
	watched := !c.skipOwnerReference
	if watched {
		if err := config.Tracker.TrackObject(blocker, parent); err != nil {
			logUntracked(ctx, err, blocker)
			watched = false
		}
	}
	noteReflected(ctx, reason, watched)
	if journal := journalFrom(ctx); journal != nil && apierrs.IsNotFound(config.Get(ctx, key, empty.Like(c.childType))) {
		journal.NoteUnseen()
	}
	return nil
}

func blockerName(err error, desired client.Object) string {
	if status := apierrs.APIStatus(nil); errors.As(err, &status) {
		if details := status.Status().Details; details != nil && details.Name != "" {
			return details.Name
		}
	}
	return desired.GetName()
}

// track makes changes of children enqueue the parent if children have no owner reference.
func (c *children[T, CT]) track(ctx context.Context, parent T, tracked ...CT) {
	if !c.tracked {
		return
	}
	config := RetrieveConfigOrDie(ctx)
	for _, child := range tracked {
		if err := config.Tracker.TrackObject(child, parent); err != nil {
			logUntracked(ctx, err, child)
		}
	}
}

// first returns the first object of the lists, or blank if the lists are empty.
func first[CT client.Object](blank CT, lists ...[]CT) CT {
	for _, list := range lists {
		if len(list) > 0 {
			return list[0]
		}
	}
	return blank
}

func isPresent[CT client.Object](obj CT) bool { return obj.GetDeletionTimestamp() == nil }

func sameObject(a, b client.Object) bool {
	return a.GetUID() == b.GetUID() && sameName(a, b)
}

func sameName(a, b client.Object) bool {
	return a.GetName() == b.GetName() && a.GetNamespace() == b.GetNamespace()
}

// shorthand holds the fields that configure an [UpdatingObjectManager] for a reconciler without a custom object
// manager.
type shorthand[T client.Object] struct {
	// field is the name of the object manager field, and verb is the verb for validation messages.
	field, verb string
	// given reports whether the user set an object manager.
	given     bool
	merge     func(current, desired T)
	harmonize func(current, desired T)
	sanitize  func(obj T) any
	finalizer string
}

// manager returns the object manager that the fields configure, or nil if they are not set.
func (s shorthand[T]) manager(objType T, track bool) ObjectManager[T] {
	if s.merge == nil {
		return nil
	}
	return &UpdatingObjectManager[T]{
		Name:                     typeName(objType) + "UpdatingObjectManager",
		Type:                     objType,
		Finalizer:                s.finalizer,
		TrackDesired:             track,
		HarmonizeImmutableFields: s.harmonize,
		MergeBeforeUpdate:        s.merge,
		Sanitize:                 s.sanitize,
	}
}

func (s shorthand[T]) validate(problems *problems, reconciler string) {
	if !s.given && s.merge == nil {
		problems.addHint(
			"set MergeBeforeUpdate to use the default UpdatingObjectManager", "%s must %s %s", reconciler, s.verb, s.field,
		)
	}
	for _, field := range []struct {
		name string
		used bool
	}{
		{"MergeBeforeUpdate", s.merge != nil},
		{"HarmonizeImmutableFields", s.harmonize != nil},
		{"Sanitize", s.sanitize != nil},
		{"Finalizer", s.finalizer != ""},
	} {
		if s.given && field.used {
			problems.add("%s may not %s both %s and %s", reconciler, s.verb, s.field, field.name)
		}
	}
}

// reportNameTaken reports that a child could not be created, because another object has its name. The report names the
// owner of the object: the error of the API server does not.
func reportNameTaken(ctx context.Context, blocker client.Object, cause error) {
	gvk, err := RetrieveConfigOrDie(ctx).GroupVersionKindFor(blocker)
	if err != nil {
		return // the kind was read before
	}
	observe.ReportRefused(ctx, gvk.GroupKind(), client.ObjectKeyFromObject(blocker),
		fmt.Errorf("%w; the existing object %s", cause, ownerOf(blocker)))
}

// ownerOf says to whom an object belongs, as far as its metadata shows.
func ownerOf(obj client.Object) string {
	if ref := metav1.GetControllerOfNoCopy(obj); ref != nil {
		return fmt.Sprintf("is controlled by %s %q", ref.Kind, ref.Name)
	}
	text := "has no controller"
	var first *metav1.ManagedFieldsEntry
	for i, entries := 0, obj.GetManagedFields(); i < len(entries); i++ {
		// Who writes a subresource, such as the status, has not created the object. The times have only seconds.
		if entry := &entries[i]; entry.Subresource == "" && (first == nil || entry.Time.Before(first.Time)) {
			first = entry
		}
	}
	if first != nil {
		text += ", and was first written by " + ownership.NameOf(first)
	}
	return text
}
