// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"trueup.dev/internal/engine/guard"
	"trueup.dev/internal/engine/step"
	"trueup.dev/internal/objects/empty"
	"trueup.dev/internal/objects/nilcheck"
)

// choice is the decision about the objects that can be a child.
type choice[CT client.Object] struct {
	// child is the object to manage. It is blank if a new child must be created.
	child CT
	// extra objects are deleted before the child is managed.
	extra []CT
	// renamed are objects that this controller made under another name. They are deleted when the child exists.
	renamed []CT
	// unidentified objects are left unchanged.
	unidentified []CT
	// managers are the clients that wrote the objects which this controller did not make.
	managers []string
	// untold is the number of unidentified objects for which no API server recorded who wrote them.
	untold int
}

// choose decides which of the objects in present is the desired child. See [ChildReconciler] for the rule.
//
// If the user identifies the child and none of several objects has the desired name, all are deleted: they are
// duplicates of a child whose name has changed.
func (c *children[T, CT]) choose(
	ctx context.Context, present []CT, desired CT, removing bool,
) (choice[CT], error) {
	switch {
	case len(present) == 0:
		return choice[CT]{child: empty.Like(c.childType)}, nil
	case nilcheck.IsNilPointer(desired):
		return c.chooseUnwanted(ctx, present, removing)
	case len(present) == 1 && (c.identify != nil || isNamed(present[0], desired)): // the common case
		return choice[CT]{child: present[0]}, nil
	}
	blank := choice[CT]{child: empty.Like(c.childType)}
	named, others := partition(present, func(obj CT) bool { return isNamed(obj, desired) })
	if c.identify != nil {
		// Table tests, which have no cache, expect that all are deleted.
		if len(named) == 1 && (len(named[0].GetManagedFields()) > 0 || RetrieveConfigOrDie(ctx).cache != nil) {
			return choice[CT]{child: named[0], extra: others}, nil
		}
		blank.extra = present
		return blank, nil
	}
	if len(named) > 0 {
		chosen, err := c.chooseOthers(ctx, others)
		chosen.child = named[0]
		return chosen, err
	}
	if desired.GetName() == "" {
		return c.chooseGenerated(ctx, present, desired)
	}
	if !c.identifiesChildren(ctx) {
		chosen, err := c.chooseOthers(ctx, others)
		chosen.child = blank.child
		if err == nil && len(others) > 1 && chosen.untold == len(others) {
			// Nothing tells who made them: they count as children.
			chosen.extra, chosen.unidentified = chosen.unidentified, nil
		}
		return chosen, err
	}
	return c.chooseIdentified(ctx, others)
}

// chooseIdentified decides about objects that the user identifies as the child and that have other names.
func (c *children[T, CT]) chooseIdentified(ctx context.Context, others []CT) (choice[CT], error) {
	chosen := choice[CT]{child: empty.Like(c.childType)}
	candidates, err := c.splitByOrigin(ctx, others, &chosen)
	if err != nil {
		return chosen, err
	}
	if len(candidates) == 1 {
		chosen.child = candidates[0]
	} else {
		chosen.extra = candidates
	}
	return chosen, nil
}

// chooseGenerated decides which object is the child if the API server generates its name.
func (c *children[T, CT]) chooseGenerated(ctx context.Context, present []CT, desired CT) (choice[CT], error) {
	matching, others := partition(present, func(obj CT) bool { return hasPrefix(obj, desired) })
	chosen, err := c.chooseOthers(ctx, others)
	chosen.child = empty.Like(c.childType)
	if err != nil {
		return chosen, err
	}
	candidates := []CT{}
	for _, obj := range matching {
		o, err := c.origin(ctx, obj)
		switch {
		case err != nil:
			return chosen, err
		case o.here || c.ourChild != nil || o.byThisProgram() && isGenerated(obj, desired):
			candidates = append(candidates, obj)
		default:
			chosen.leave(obj, o)
		}
	}
	switch {
	case len(candidates) == 1:
		chosen.child = candidates[0]
	case len(candidates) == 0 && c.identifiesChildren(ctx):
		return c.chooseIdentified(ctx, others)
	default:
		chosen.extra = append(chosen.extra, candidates...)
	}
	return chosen, nil
}

// chooseOthers decides about objects beside the child, or beside a child that must be created.
func (c *children[T, CT]) chooseOthers(ctx context.Context, others []CT) (chosen choice[CT], err error) {
	if c.identifiesChildren(ctx) {
		chosen.extra, err = c.splitByOrigin(ctx, others, &chosen)
		return chosen, err
	}
	alone := len(others) > 0 && c.isAlone(ctx)
	for _, obj := range others {
		switch o, err := c.origin(ctx, obj); {
		case err != nil:
			return chosen, err
		case o.recorded && !o.adopted && alone:
			chosen.renamed = append(chosen.renamed, obj)
		default:
			chosen.leave(obj, o)
		}
	}
	return chosen, nil
}

// chooseUnwanted decides which objects are deleted, because no child is desired.
func (c *children[T, CT]) chooseUnwanted(ctx context.Context, present []CT, removing bool) (choice[CT], error) {
	chosen := choice[CT]{child: empty.Like(c.childType)}
	if !removing && !c.identifiesChildren(ctx) && !c.isAlone(ctx) {
		chosen.unidentified = present // they may be children of another reconciler
		return chosen, nil
	}
	unwanted, err := c.splitByOrigin(ctx, present, &chosen)
	if err != nil {
		return chosen, err
	}
	if removing {
		chosen.unidentified = nil // the garbage collector decides about them
	}
	if len(unwanted) == 1 {
		chosen.child = unwanted[0]
	} else {
		chosen.extra = unwanted
	}
	return chosen, nil
}

// splitByOrigin returns the objects that this controller made, or that the user identifies with OurChild. The others
// are left unchanged.
func (c *children[T, CT]) splitByOrigin(ctx context.Context, objs []CT, chosen *choice[CT]) ([]CT, error) {
	if c.ourChild != nil {
		return objs, nil
	}
	made := make([]CT, 0, len(objs))
	for _, obj := range objs {
		switch o, err := c.origin(ctx, obj); {
		case err != nil:
			return nil, err
		case o.here || o.adopted:
			made = append(made, obj)
		default:
			chosen.leave(obj, o)
		}
	}
	return made, nil
}

// leave notes that an object is left unchanged.
func (d *choice[CT]) leave(obj CT, o origin) {
	d.unidentified = append(d.unidentified, obj)
	switch {
	case !o.here:
		d.managers = union(d.managers, o.managers)
	case !o.recorded:
		d.untold++
	}
}

// identifiesChildren reports whether the user identifies children among the objects of their kind. ListOptions may
// select the children of another reconciler as well.
func (c *children[T, CT]) identifiesChildren(ctx context.Context) bool {
	return c.identify != nil || c.ourChild != nil || c.listOptions != nil && c.isAlone(ctx)
}

// isAlone reports whether all objects of the kind that this controller made for the parent belong to one child. They do
// not within a loop, and if another reconciler of the same root manages the same kind.
func (c *children[T, CT]) isAlone(ctx context.Context) bool {
	return !isRepeated(ctx) && !c.declared.sharesKind(c.by)
}

// isNamed reports whether obj has the desired name.
func isNamed(obj, desired client.Object) bool {
	return !nilcheck.IsNilPointer(desired) && desired.GetName() != "" && sameName(obj, desired)
}

// maxGeneratedPrefix is how much of metadata.generateName the API server uses: see k8s.io/apiserver/pkg/storage/names.
const maxGeneratedPrefix = 58

// generatedPrefix returns how the names begin that the API server generates for desired.
func generatedPrefix(desired client.Object) string {
	prefix := desired.GetGenerateName()
	return prefix[:min(len(prefix), maxGeneratedPrefix)]
}

// hasPrefix reports whether obj can have a name that the API server generates for desired.
func hasPrefix(obj, desired client.Object) bool {
	return strings.HasPrefix(obj.GetName(), generatedPrefix(desired))
}

// isGenerated reports whether the API server has generated the name of obj for desired: after the prefix it has five
// consonants or digits, see k8s.io/apimachinery/pkg/util/rand.
func isGenerated(obj, desired client.Object) bool {
	const length, alphabet = 5, "bcdfghjklmnpqrstvwxz2456789"
	end, found := strings.CutPrefix(obj.GetName(), generatedPrefix(desired))
	return found && len(end) == length && strings.Trim(end, alphabet) == ""
}

// mustBeNamed returns an error for a desired child that cannot be distinguished from other objects.
func mustBeNamed(desired client.Object) error {
	if nilcheck.IsNilPointer(desired) || desired.GetName() != "" || desired.GetGenerateName() != "" {
		return nil
	}
	return fmt.Errorf("%s has no name: set metadata.name or metadata.generateName", typeName(desired))
}

// warningTTL is how long a warning about objects is not repeated for a parent.
const warningTTL = 6 * time.Hour

// warnUnidentified warns about objects that are left unchanged because they cannot be distinguished from the child, or
// because this controller did not make them.
func (c *children[T, CT]) warnUnidentified(ctx context.Context, parent T, chosen choice[CT]) {
	// An object of the inventory is pruned.
	unidentified := slices.DeleteFunc(slices.Clone(chosen.unidentified), func(obj CT) bool {
		return inventoryFrom(ctx).has(obj)
	})
	hint := ""
	if len(chosen.managers) > 0 {
		hint = ". " + writtenBy(chosen.managers)
	}
	c.warn(ctx, parent, unidentified, "UnidentifiedChildren",
		"not identified as a child, define OurChild in %s%s", c.reconciler, hint)
}

// warn warns about objects that are left unchanged, once for each parent and set of objects.
func (c *children[T, CT]) warn(ctx context.Context, parent T, objs []CT, reason, format string, args ...any) {
	if len(objs) == 0 {
		return
	}
	names := make([]string, len(objs))
	for i, obj := range objs {
		names[i] = obj.GetName()
	}
	slices.Sort(names)
	listed := strings.Join(names, ", ")
	if !c.firstTime(parent, reason, listed) {
		return
	}
	why := fmt.Sprintf(format, args...)
	logr.FromContextOrDiscard(ctx).Info("leaving objects alone", "objects", names, "reason", why)
	RetrieveOriginalConfigOrDie(ctx).recorder().Eventf(parent, corev1.EventTypeWarning, reason, "%s",
		truncate(fmt.Sprintf("Left %s %s alone: %s", typeName(c.childType), listed, why)))
}

// firstTime reports whether a warning about a parent is new.
func (c *children[T, CT]) firstTime(parent T, reason, about string) bool {
	c.warnOnce.Do(func() { c.warned = cache.NewExpiring() })
	key := client.ObjectKeyFromObject(parent).String() + " " + string(parent.GetUID()) + " " + reason
	if warned, ok := c.warned.Get(key); ok && warned == about {
		return false
	}
	c.warned.Set(key, about, warningTTL)
	return true
}

// reportName warns that the child that the user identifies has another name than desired. A name cannot be changed.
func (c *children[T, CT]) reportName(ctx context.Context, parent T, child, desired CT) {
	// Users' table tests expect no such event.
	if !exists(child) || nilcheck.IsNilPointer(desired) || desired.GetName() == "" ||
		desired.GetName() == child.GetName() || RetrieveConfigOrDie(ctx).cache == nil ||
		!c.firstTime(parent, "ChildHasOtherName", child.GetName()+" "+desired.GetName()) {
		return
	}
	text := fmt.Sprintf("The %s is %q and the desired name is %q: it keeps its name because %s identifies it, "+
		"delete it to have it created with the new name",
		typeName(c.childType), child.GetName(), desired.GetName(), c.reconciler)
	logr.FromContextOrDiscard(ctx).Info("the child has another name than desired", "child", child.GetName(),
		"desired", desired.GetName())
	RetrieveOriginalConfigOrDie(ctx).recorder().Eventf(parent, corev1.EventTypeWarning, "ChildHasOtherName", "%s",
		truncate(text))
}

// sharesWith reports whether children can be listed without copying them. The code here does not change them, but a
// custom object manager may.
func (c *children[T, CT]) sharesWith(config Config) bool {
	if _, ours := c.manager.(sharingManager[CT]); !ours || config.cache == nil {
		return false
	}
	items, err := meta.GetItemsPtr(c.childListType)
	return err == nil && reflect.TypeOf(items).Elem().Elem().Kind() == reflect.Struct
}

// private returns a child that the caller may change.
func (c *children[T, CT]) private(child CT) CT {
	if c.shared.Empty() {
		return child
	}
	return child.DeepCopyObject().(CT)
}

// found are objects that can be children of a parent.
type found[CT client.Object] struct {
	// known are the objects that the user does not rule out.
	known []CT
	// strays are the others that the parent controls. One of them is the child if it has the desired name: another
	// client has changed the labels by which the user identifies it.
	strays []CT
}

// list returns the objects in the cache that can be children of the parent.
func (c *children[T, CT]) list(ctx context.Context, parent T) (found[CT], error) {
	inventoryFrom(ctx).ran(c.heldFinalizer())
	config := RetrieveConfigOrDie(ctx)
	if !c.isSetUp && inController(ctx) {
		if gvk, err := config.GroupVersionKindFor(c.childType); err == nil {
			scopeFrom(ctx).watched.warnChildNotSetUp(ctx, c.reconciler, gvk.GroupKind())
		}
	}
	opts := c.optionsFor(ctx, parent)
	if !c.shared.Empty() {
		opts = append(slices.Clip(opts), client.UnsafeDisableDeepCopy)
	}

	var indexErr error
	// The API server does not have this index.
	if !journalFrom(ctx).Live() {
		if narrowed, namespace, ok := config.owners.controlledBy(c.indexed, parent.GetUID(), opts); ok {
			list := empty.Like(c.childListType)
			if indexErr = config.List(ctx, list, narrowed); indexErr == nil {
				return c.filter(parent, list, namespace)
			}
		}
	}
	list := empty.Like(c.childListType)
	if err := config.List(ctx, list, opts...); err != nil {
		step.About(ctx, err, typeName(c.childType))
		return found[CT]{}, err
	}
	if indexErr != nil {
		// The list with the index failed: the client does not read this kind from the cache.
		logr.FromContextOrDiscard(ctx).Info(
			"unable to look children up by owner, all objects in the namespace are listed from now on",
			"childType", typeName(c.childType), "reason", indexErr.Error())
		config.owners.forget(c.indexed)
	}
	return c.filter(parent, list, "")
}

// addUncached adds the children that only the API server has to the children from the cache. It is used before
// decisions that cannot be undone. A child in the cache that no longer exists is harmless: deleting it again has no
// effect.
func (c *children[T, CT]) addUncached(ctx context.Context, parent T, cached found[CT]) (found[CT], error) {
	config := RetrieveConfigOrDie(ctx)
	if config.APIReader == nil {
		return cached, nil
	}
	// The API server supports only these field selectors. The filter removes additional objects from the list.
	options := (&client.ListOptions{}).ApplyOptions(c.optionsFor(ctx, parent))
	options.FieldSelector = servedFields(options.FieldSelector)
	list := empty.Like(c.childListType)
	if err := config.APIReader.List(ctx, list, options); err != nil {
		step.About(ctx, err, typeName(c.childType))
		return cached, err
	}
	live, err := c.filter(parent, list, "")
	if err != nil {
		return cached, err
	}
	for _, child := range live.known {
		if !slices.ContainsFunc(cached.known, func(other CT) bool { return sameObject(child, other) }) {
			journalFrom(ctx).NoteUnseen()
			stepRunFrom(ctx).noteUnseen()
			cached.known = append(cached.known, child)
		}
	}
	return cached, nil
}

func (c *children[T, CT]) optionsFor(ctx context.Context, parent T) []client.ListOption {
	if c.listOptions != nil {
		return c.listOptions(ctx, parent)
	}
	return []client.ListOption{client.InNamespace(parent.GetNamespace())}
}

// filter returns the children of a list. If namespace is not empty, objects in other namespaces are left out.
func (c *children[T, CT]) filter(parent T, list client.ObjectList, namespace string) (found[CT], error) {
	items, err := listItems[CT](list)
	if err != nil {
		return found[CT]{}, err
	}
	items = slices.DeleteFunc(items, func(child CT) bool {
		return !c.isOwned(parent, child) || namespace != "" && child.GetNamespace() != namespace
	})
	if !c.shared.Empty() {
		for _, child := range items {
			nameKind(child, c.shared)
		}
	}
	if c.ourChild == nil || c.skipOwnerReference {
		return found[CT]{known: items}, nil
	}
	var all found[CT]
	all.known, all.strays = partition(items, func(child CT) bool { return c.ourChild(parent, child) })
	return all, nil
}

// isOwned reports whether an object can be a child: the parent controls it, or children have no owner reference and the
// user identifies it.
func (c *children[T, CT]) isOwned(parent T, child CT) bool {
	if c.skipOwnerReference {
		return c.accepts(parent, child)
	}
	return metav1.IsControlledBy(child, parent)
}

// accepts reports whether the user does not rule out that an object is the child.
func (c *children[T, CT]) accepts(parent T, child CT) bool {
	return c.ourChild == nil || c.ourChild(parent, child)
}

// servedFields returns the requirements of a field selector that every API server supports.
func servedFields(selector fields.Selector) fields.Selector {
	if selector == nil {
		return nil
	}
	served := []fields.Selector{}
	for _, r := range selector.Requirements() {
		if r.Field == "metadata.name" || r.Field == "metadata.namespace" {
			if r.Operator == selection.NotEquals {
				served = append(served, fields.OneTermNotEqualSelector(r.Field, r.Value))
			} else {
				served = append(served, fields.OneTermEqualSelector(r.Field, r.Value))
			}
		}
	}
	return fields.AndSelectors(served...)
}

// needsLiveList reports whether a stale list of children could clear a finalizer. A child that the cache does not have
// yet would then never be deleted, or after the children of a step that it depends on.
func (c *children[T, CT]) needsLiveList(ctx context.Context, parent T, known []CT) bool {
	if len(known) == 0 && stepRunFrom(ctx).confirms() {
		return true
	}
	if c.skipOwnerReference && parent.GetDeletionTimestamp() != nil {
		return true
	}
	holder, ok := c.manager.(FinalizerHolder)
	return ok && len(known) == 0 && holder.HeldFinalizer() != "" &&
		controllerutil.ContainsFinalizer(parent, holder.HeldFinalizer())
}

// adopt returns an existing object of the desired name that becomes the child, or a blank one. The error is an
// AlreadyExists error if another controller owns the object.
func (c *children[T, CT]) adopt(ctx context.Context, parent T, desired CT) (CT, error) {
	blank := empty.Like(c.childType)
	if c.adopts == nil || desired.GetName() == "" {
		return blank, nil
	}
	config := RetrieveConfigOrDie(ctx)
	candidate, reader := empty.Like(c.childType), client.Reader(config.Client)
	if config.divides(c.childType) && config.APIReader != nil {
		reader = config.APIReader // no cache has an object without the label of a replica
	}
	switch err := reader.Get(ctx, client.ObjectKeyFromObject(desired), candidate); {
	case apierrs.IsNotFound(err):
		return blank, nil
	case err != nil:
		step.About(ctx, err, identify(desired))
		return blank, err
	}
	switch controller := metav1.GetControllerOf(candidate); {
	case metav1.IsControlledBy(candidate, parent): // adopted before, and not recognized by OurChild yet
		return candidate, nil
	case candidate.GetDeletionTimestamp() != nil || !c.adopts(ctx, parent, candidate):
		return blank, nil
	case controller != nil:
		return blank, c.controlledByAnother(ctx, desired, controller)
	}
	if err := parentExists(ctx, parent); err != nil {
		return blank, err
	}
	w := newWriter(ctx, "Ownership", parent)
	w.log.Info("adopting child", "child", identify(candidate))
	before := candidate.DeepCopyObject().(CT)
	if err := controlBy(ctx, parent, candidate); err != nil {
		return blank, err
	}
	patching := guard.WithFieldOwner(ctx, adoptingOwner(ctx))
	if err := config.Patch(patching, candidate, lockedPatch(before)); err != nil {
		return blank, w.failed(err, "unable to adopt child", "AdoptionFailed", "adopt", candidate)
	}
	w.succeeded("Adopted", candidate)
	return candidate, nil
}

// release removes the owner reference to the parent from a child that is no longer desired, if the user wants that, or
// if the child was adopted and the user does not say what to do. It returns false if the child must be deleted.
func (c *children[T, CT]) release(ctx context.Context, parent T, child CT) (bool, error) {
	if releases, err := c.isReleased(ctx, parent, child); !releases || err != nil {
		return err != nil, err
	}
	w := newWriter(ctx, "Ownership", parent)
	w.log.Info("releasing child", "child", identify(child))
	released := child.DeepCopyObject().(CT)
	released.SetOwnerReferences(slices.DeleteFunc(
		slices.Clone(child.GetOwnerReferences()),
		func(ref metav1.OwnerReference) bool { return ref.UID == parent.GetUID() },
	))
	inventoryFrom(ctx).unlabel(released)
	switch err := w.config.Patch(ctx, released, lockedPatch(child)); {
	case apierrs.IsNotFound(err):
	case err != nil:
		return true, w.failed(err, "unable to release child", "ReleaseFailed", "release", child)
	default:
		w.succeeded("Released", child)
	}
	return true, nil
}

func (c *children[T, CT]) isReleased(ctx context.Context, parent T, child CT) (bool, error) {
	removing := MustRemove(ctx, parent)
	switch {
	case c.skipOwnerReference:
		return false, nil
	case removing && len(child.GetOwnerReferences()) < 2:
		// Without another owner, the child is garbage-collected with its parent in any case.
		return false, nil
	case !removing && c.releases != nil:
		return c.releases(ctx, parent, child), nil
	}
	o, err := c.origin(ctx, child)
	return o.adopted, err
}

// lockedPatch returns a merge patch that fails if the object has changed. It replaces all owner references.
func lockedPatch(before client.Object) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}

// controlledByAnother returns the error of the API server for an object that exists, with the reason.
func (c *children[T, CT]) controlledByAnother(
	ctx context.Context, desired CT, controller *metav1.OwnerReference,
) error {
	resource := schema.GroupResource{Resource: typeName(c.childType)}
	if gvk, err := RetrieveConfigOrDie(ctx).GroupVersionKindFor(c.childType); err == nil {
		resource.Group = gvk.Group
	}
	err := apierrs.NewAlreadyExists(resource, desired.GetName())
	err.ErrStatus.Message += fmt.Sprintf(" and is controlled by %s %q", controller.Kind, controller.Name)
	step.About(ctx, err, identify(desired))
	return err
}

// parentExists reads the parent from the API server. What a parent adopts that no longer exists is garbage-collected,
// and what is created for one that was deleted with its children left behind is left behind, too.
func parentExists(ctx context.Context, parent client.Object) error {
	config := RetrieveOriginalConfigOrDie(ctx)
	if config.APIReader == nil {
		return nil
	}
	gvk, err := ownerKind(ctx, parent)
	if err != nil {
		return err
	}
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(gvk)
	if err := config.APIReader.Get(ctx, client.ObjectKeyFromObject(parent), live); err != nil {
		return fmt.Errorf("read the parent before it gets a child: %w", err)
	}
	if live.UID != parent.GetUID() || live.DeletionTimestamp != nil {
		return fmt.Errorf("%s was deleted: it gets no child", identify(parent))
	}
	return nil
}
