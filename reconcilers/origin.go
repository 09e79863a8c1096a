// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	rtime "trueup.dev/time"
)

// origin is who made an object.
type origin struct {
	// here reports whether this controller made the object, or an earlier version of it, or whether it must be assumed
	// because no API server recorded who wrote the object.
	here bool
	// recorded reports whether the API server recorded that this controller made the object.
	recorded bool
	// adopted reports whether it took over an object of another client.
	adopted bool
	// managers are the names of the clients that wrote the object.
	managers []string
}

// fieldOwning is an object manager that writes as field owners of its own.
type fieldOwning interface {
	// fieldOwners returns the current name and the former ones.
	fieldOwners(ctx context.Context) []string
}

// fieldOwners implements [fieldOwning].
func (r *ApplyingObjectManager[T]) fieldOwners(ctx context.Context) []string {
	return append([]string{r.owner(ctx)}, r.FormerOwners...)
}

// fieldOwners implements [fieldOwning].
func (r *RecreatingObjectManager[T]) fieldOwners(ctx context.Context) []string {
	if manager, ok := r.Manager.(fieldOwning); ok {
		return manager.fieldOwners(ctx)
	}
	return nil
}

// fieldOwners are the names under which this controller and its earlier versions write objects with a manager.
func fieldOwners(ctx context.Context, manager any) []string {
	names := []string{}
	if owner := fieldOwner(ctx); owner != "" {
		names = append(names, owner)
	}
	if config := scopeFrom(ctx).originalConfig; config != nil {
		names = append(names, config.formerFieldOwners()...)
	}
	if manager, ok := manager.(fieldOwning); ok {
		names = append(names, manager.fieldOwners(ctx)...)
	}
	return names
}

// adoptingOwner returns the field owner of adoptions by a controller. It tells later versions that they did not make
// the object.
func adoptingOwner(ctx context.Context) string {
	owner := fieldOwner(ctx)
	if owner == "" {
		return ""
	}
	return limitFieldOwner(owner + " adopting")
}

// readOrigin returns the origin of an object that may have been read from a cache. Names are the field owners of this
// controller. If the cache has no managed fields, as in table tests and with a transformation that removes them, the
// object is read from the API server.
func readOrigin(ctx context.Context, config Config, obj client.Object, names []string) (origin, error) {
	entries := obj.GetManagedFields()
	if len(entries) == 0 && config.cache != nil && config.APIReader != nil {
		gvk, err := config.GroupVersionKindFor(obj)
		if err != nil {
			return origin{}, err
		}
		live := &metav1.PartialObjectMetadata{}
		live.SetGroupVersionKind(gvk)
		switch err := config.APIReader.Get(ctx, client.ObjectKeyFromObject(obj), live); {
		case apierrs.IsNotFound(err):
			return origin{}, nil
		case err != nil:
			return origin{}, err
		case live.GetUID() != obj.GetUID():
			return origin{}, nil
		}
		entries = live.GetManagedFields()
	}
	o := origin{here: len(entries) == 0}
	adopting := adoptingOwner(ctx)
	for _, entry := range entries {
		switch {
		case slices.Contains(names, entry.Manager):
			o.here, o.recorded = true, true
		case adopting != "" && entry.Manager == adopting:
			o.adopted = true
		}
		if !slices.Contains(o.managers, entry.Manager) {
			o.managers = append(o.managers, entry.Manager)
		}
	}
	slices.Sort(o.managers)
	return o, nil
}

// versionOrigin is the origin of an object in one version.
type versionOrigin struct {
	version string
	origin
}

// origin returns the origin of an object that the parent controls.
func (c *children[T, CT]) origin(ctx context.Context, obj CT) (origin, error) {
	known, found := c.origins.get(obj)
	if !found || known.version != obj.GetResourceVersion() {
		config := RetrieveConfigOrDie(ctx)
		read, err := readOrigin(ctx, config, obj, fieldOwners(ctx, c.manager))
		if err != nil {
			return read, err
		}
		known = versionOrigin{obj.GetResourceVersion(), read}
		if len(obj.GetManagedFields()) == 0 && config.cache != nil {
			now := rtime.RetrieveNow(ctx)
			c.origins.put(obj, known, now, now.Add(rememberedFor))
		}
	}
	if _, ok := c.managed.get(obj); ok {
		known.here, known.recorded = true, true
	}
	return known.origin, nil
}

// remember notes that an object has been the child. It only matters for objects that an earlier version made under
// another name, until they are next written.
func (c *children[T, CT]) remember(ctx context.Context, child CT) {
	if RetrieveConfigOrDie(ctx).cache == nil {
		return
	}
	own := RetrieveOriginalConfigOrDie(ctx).FieldOwner
	entries := child.GetManagedFields()
	if slices.ContainsFunc(entries, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == own || own == "" && isDefaultFieldOwner(entry.Manager)
	}) {
		return
	}
	now := rtime.RetrieveNow(ctx)
	c.managed.put(child, struct{}{}, now, now.Add(rememberedFor))
}

// rememberedFor is how long it is remembered that an object has been the child. It is longer than the usual time
// between two reconciles of a resource.
const rememberedFor = 24 * time.Hour

// byThisProgram reports whether a program with the same file name wrote an object without naming a field owner, for
// example an earlier version of this one.
func (o origin) byThisProgram() bool {
	program, _, _ := strings.Cut(rest.DefaultKubernetesUserAgent(), "/")
	return slices.Contains(o.managers, program)
}

// writtenBy says in a warning which clients wrote an object, and what to do if one of them is this controller.
func writtenBy(managers []string) string {
	return fmt.Sprintf("Written by %s: if that was an earlier version of this controller, name it in "+
		"WithFormerFieldOwners", strings.Join(managers, ", "))
}

// holdsData reports whether objects of a kind often hold what no controller can compute again, such as a generated
// password.
func holdsData(kind schema.GroupKind) bool {
	switch kind {
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}, schema.GroupKind{Kind: "PersistentVolume"},
		schema.GroupKind{Kind: "Namespace"}, schema.GroupKind{Kind: "Secret"},
		schema.GroupKind{Group: "apps", Kind: "StatefulSet"},
		schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		return true
	}
	return false
}

// orphans reports whether the children of an object that is being deleted stay, as `kubectl delete --cascade=orphan`
// asks for: the garbage collector removes the owner references.
func orphans(parent client.Object) bool {
	return parent.GetDeletionTimestamp() != nil &&
		controllerutil.ContainsFinalizer(parent, metav1.FinalizerOrphanDependents)
}

// isOwnedBy reports whether an object has an owner reference to another one.
func isOwnedBy(obj, owner client.Object) bool {
	return slices.ContainsFunc(obj.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
		return ref.UID == owner.GetUID()
	})
}
