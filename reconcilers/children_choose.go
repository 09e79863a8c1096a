// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	blank := choice[CT]{child: empty.Like(c.childType)}
	switch {
	case len(present) == 0:
		return blank, nil
	case nilcheck.IsNilPointer(desired):
		return c.chooseUnwanted(ctx, present, removing)
	case len(present) == 1 && (c.identify != nil || isNamed(present[0], desired)): // the common case
		return choice[CT]{child: present[0]}, nil
	}
	named, others := partition(present, func(obj CT) bool { return isNamed(obj, desired) })
	if c.identify != nil {
		if len(named) == 1 && len(named[0].GetManagedFields()) > 0 {
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
