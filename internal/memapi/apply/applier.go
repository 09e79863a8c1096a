// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"trueup.dev/internal/memapi/kinds"
)

// Applier merges apply configurations and tracks field owners. It is safe for concurrent use, and any number of servers
// may share it.
type Applier struct {
	registry *kinds.Registry

	memory   memory
	mu       sync.RWMutex
	managers map[endpoint]*fieldManager
	types    map[schema.GroupVersionKind]Type
}

// fieldManager manages the fields of a kind at one endpoint.
type fieldManager struct {
	*managedfields.FieldManager
	converter managedfields.TypeConverter
}

// endpoint is an object or a subresource of a kind.
type endpoint struct {
	kind        *kinds.Kind
	subresource string
}

// New returns an applier for the kinds of a registry. Its models of a kind are created when they are first needed.
func New(registry *kinds.Registry) *Applier {
	return &Applier{
		registry: registry, managers: map[endpoint]*fieldManager{}, types: map[schema.GroupVersionKind]Type{},
	}
}

// Apply returns the live object with a configuration applied by a manager. The live object is nil if it does not exist.
// Fields that the manager applied before and no longer applies are removed, unless they have another owner.
//
// Changing a field of another owner requires force. Without it, Apply returns a conflict that lists these fields. Other
// errors with a status are errors of a bad request, errors without one are internal errors of the server. The result
// has the type that the scheme has for the kind. It is unstructured if the type of a custom kind cannot hold it, which
// the schema must refuse. It is neither defaulted nor validated. It shares nothing with the arguments, which are not
// changed.
//
// Managers of other versions own fields of these versions, to which convert converts objects. It may be nil for a kind
// with one version.
func (a *Applier) Apply(
	live client.Object, patch *unstructured.Unstructured, manager string, force bool, subresource string, now time.Time,
	convert kinds.Converter,
) (client.Object, error) {
	if patch.GetResourceVersion() != "" || convert != nil {
		return a.apply(live, patch, manager, force, subresource, now, convert)
	}
	r := request{applied: true, force: force, manager: manager, subresource: subresource}
	return a.memory.recall(r, live, patch, live, now, func() (client.Object, error) {
		return a.apply(live, patch, manager, force, subresource, now, nil)
	})
}

func (a *Applier) apply(
	live client.Object, patch *unstructured.Unstructured, manager string, force bool, subresource string, now time.Time,
	convert kinds.Converter,
) (client.Object, error) {
	k, ok := a.registry.For(patch.GroupVersionKind())
	if live != nil {
		k, ok = a.kindOf(live)
	}
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%s is not served", patch.GroupVersionKind()))
	}
	fields, err := a.managerWith(k, subresource, convert)
	if err != nil {
		return nil, err
	}
	before, err := a.versioned(k, live)
	if err != nil {
		return nil, err
	}
	given := managedOf(before)
	merged, err := fields.Apply(before, patch.DeepCopy(), manager, force)
	if err != nil {
		return nil, inOrder(err, fields.converter, patch)
	}
	obj, err := a.typed(k, merged)
	if err != nil {
		return nil, err
	}
	stamp(obj, given, now)
	return obj, nil
}

// Update returns an updated object with the managed fields after a request of a manager other than apply. The live
// object is nil if the updated one is created. Neither of them is changed.
//
// Managed fields in the updated object that differ from the managed fields of the live one are an attempt to change
// them. For convert see [Applier.Apply].
func (a *Applier) Update(
	live, updated client.Object, manager, subresource string, now time.Time, convert kinds.Converter,
) (client.Object, error) {
	if convert != nil {
		return a.update(live, updated, manager, subresource, now, convert)
	}
	r := request{manager: manager, subresource: subresource}
	return a.memory.recall(r, live, updated, updated, now, func() (client.Object, error) {
		return a.update(live, updated, manager, subresource, now, nil)
	})
}

func (a *Applier) update(
	live, updated client.Object, manager, subresource string, now time.Time, convert kinds.Converter,
) (client.Object, error) {
	k, ok := a.kindOf(updated)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%T is not served", updated))
	}
	if subresource == scaleSubresource && k.Scale != nil && live != nil {
		entries, err := a.scaled(k, live, updated, manager)
		if err != nil {
			return nil, err
		}
		obj := updated.DeepCopyObject().(client.Object)
		obj.SetManagedFields(entries)
		return obj, nil
	}
	fields, err := a.managerWith(k, subresource, convert)
	if err != nil {
		return nil, err
	}
	before, err := a.versioned(k, live)
	if err != nil {
		return nil, err
	}
	after, err := a.versioned(k, updated)
	if err != nil {
		return nil, err
	}
	given := managedOf(before)
	obj := updated.DeepCopyObject().(client.Object)
	managed, err := fields.Update(before, after, manager)
	if err != nil { // for example a conversion that fails: a server logs it, and keeps the managed fields
		obj.SetManagedFields(given)
		return obj, nil //nolint:nilerr // as above
	}
	obj.SetManagedFields(managed.(metav1.Object).GetManagedFields())
	stamp(obj, given, now)
	return obj, nil
}

func (a *Applier) kindOf(obj client.Object) (*kinds.Kind, bool) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return a.registry.For(u.GroupVersionKind())
	}
	gvks, _, err := a.registry.Scheme().ObjectKinds(obj)
	if err != nil {
		return nil, false
	}
	for _, gvk := range gvks {
		if k, ok := a.registry.For(gvk); ok {
			return k, true
		}
	}
	return nil, false
}

// manager returns the field manager of an endpoint. It is created when it is first needed.
func (a *Applier) manager(k *kinds.Kind, subresource string) (*fieldManager, error) {
	at := endpoint{k, subresource}
	a.mu.RLock()
	fields, ok := a.managers[at]
	a.mu.RUnlock()
	if ok {
		return fields, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if fields, ok = a.managers[at]; ok {
		return fields, nil
	}
	converter, err := converterFor(k)
	if err != nil {
		return nil, err
	}
	if fields, err = a.newManager(k, subresource, converter, nil); err != nil {
		return nil, err
	}
	a.managers[at] = fields
	return fields, nil
}

// managerWith is manager for a kind with several versions, unless convert is nil.
func (a *Applier) managerWith(k *kinds.Kind, subresource string, convert kinds.Converter) (*fieldManager, error) {
	fields, err := a.manager(k, subresource)
	if err != nil || convert == nil {
		return fields, err
	}
	return a.newManager(k, subresource, fields.converter, convert)
}

func (a *Applier) newManager(
	k *kinds.Kind, subresource string, converter managedfields.TypeConverter, convert kinds.Converter,
) (*fieldManager, error) {
	resets := map[fieldpath.APIVersion]fieldpath.Filter{}
	if paths := k.Resets(subresource); len(paths) > 0 {
		set := fieldpath.NewSet()
		for _, path := range paths {
			elements := make([]any, len(path))
			for i, name := range path {
				elements[i] = name
			}
			set.Insert(fieldpath.MakePathOrDie(elements...))
		}
		resets[fieldpath.APIVersion(k.GroupVersion().String())] = fieldpath.NewExcludeSetFilter(set)
	}
	version := versions{a, k, convert, converter}
	newManager := managedfields.NewDefaultFieldManager
	if k.Custom {
		newManager = managedfields.NewDefaultCRDFieldManager
	}
	made, err := newManager(
		converter, version, version, version, k.GroupVersionKind, k.GroupVersion(), subresource, resets,
	)
	if err != nil {
		return nil, fmt.Errorf("managed fields of %s: %w", k.GroupVersionKind, err)
	}
	return &fieldManager{FieldManager: made, converter: converter}, nil
}

// versioned returns a copy of an object with its kind set, or an empty object for nil.
func (a *Applier) versioned(k *kinds.Kind, obj client.Object) (client.Object, error) {
	if obj == nil {
		return a.empty(k)
	}
	obj = obj.DeepCopyObject().(client.Object)
	obj.GetObjectKind().SetGroupVersionKind(k.GroupVersionKind)
	return obj, nil
}

// empty returns the object from which a server starts a creation. Custom resources lack even the fields that their Go
// type always writes.
func (a *Applier) empty(k *kinds.Kind) (client.Object, error) {
	obj := client.Object(&unstructured.Unstructured{})
	if !k.Custom && a.registry.Scheme().Recognizes(k.GroupVersionKind) {
		made, err := a.registry.Scheme().New(k.GroupVersionKind)
		if err != nil {
			return nil, err
		}
		obj = made.(client.Object)
	}
	obj.GetObjectKind().SetGroupVersionKind(k.GroupVersionKind)
	return obj, nil
}

// typed converts an object to the type that the scheme has for its kind, if the type can hold all fields. For custom
// kinds, the schema must report fields that it cannot hold.
func (a *Applier) typed(k *kinds.Kind, merged runtime.Object) (client.Object, error) {
	t, ok := a.registry.Scheme().AllKnownTypes()[k.GroupVersionKind]
	u, untyped := merged.(*unstructured.Unstructured)
	if !ok || !untyped {
		return merged.(client.Object), nil
	}
	if k.Custom {
		emptyNulls(u)
	}
	obj := reflect.New(t).Interface().(client.Object)
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, obj)
	switch {
	case err == nil && (!k.Custom || holds(obj, u)):
		return obj, nil
	case k.Custom:
		return u, nil
	default:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%s cannot be decoded: %v", k.Kind, err))
	}
}

// emptyNulls replaces nulls in metadata, which remain when other fields in them are no longer applied, by empty values:
// metadata in Go has no nulls, but a server distinguishes them from absent fields.
func emptyNulls(u *unstructured.Unstructured) {
	metadata, _ := u.Object["metadata"].(map[string]any)
	for name, empty := range map[string]any{
		"labels": map[string]any{}, "annotations": map[string]any{}, "ownerReferences": []any{}, "finalizers": []any{},
	} {
		if value, found := metadata[name]; found && value == nil {
			metadata[name] = empty
		}
	}
}

// holds reports whether an object has all fields of the content that it was converted from. Empty fields that are
// omitted may be missing.
func holds(obj client.Object, made *unstructured.Unstructured) bool {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return false
	}
	for key, value := range made.Object {
		if key != "apiVersion" && key != "kind" && key != "metadata" && !contains(content, key, value) {
			return false
		}
	}
	return true
}

// contains reports whether content has a field with all values in it. A null counts as a value.
func contains(content map[string]any, key string, made any) bool {
	held, found := content[key]
	fields, ok := made.(map[string]any)
	if !ok {
		return found && (held != nil || made == nil)
	}
	others, ok := held.(map[string]any)
	for key, value := range fields {
		ok = ok && contains(others, key, value)
	}
	return ok
}

func managedOf(obj client.Object) []metav1.ManagedFieldsEntry {
	return slices.Clone(obj.GetManagedFields())
}

// stamp sets the time of new entries, and sorts all entries like a server, whose order depends on the times.
func stamp(obj client.Object, before []metav1.ManagedFieldsEntry, now time.Time) {
	entries := slices.Clone(obj.GetManagedFields())
	for i := range entries {
		e := &entries[i]
		kept := slices.ContainsFunc(before, func(b metav1.ManagedFieldsEntry) bool {
			return b.Manager == e.Manager && b.Operation == e.Operation && b.Subresource == e.Subresource &&
				b.APIVersion == e.APIVersion && b.Time.Equal(e.Time)
		})
		if !kept && e.Time != nil {
			e.Time = new(metav1.Unix(now.Unix(), 0))
		}
	}
	slices.SortStableFunc(entries, compareEntries)
	obj.SetManagedFields(entries)
}

// versions is the part of a scheme that field managers need.
type versions struct {
	applier *Applier
	kind    *kinds.Kind
	convert kinds.Converter // nil if all objects have the version of the kind
	types   managedfields.TypeConverter
}

func (versions) Convert(_, _, _ any) error { return nil }

func (v versions) ConvertToVersion(in runtime.Object, to runtime.GroupVersioner) (runtime.Object, error) {
	u, ok := in.(*unstructured.Unstructured)
	version, named := to.(schema.GroupVersion)
	if v.convert == nil || !ok || !named || u.GroupVersionKind().GroupVersion() == version {
		return in, nil
	}
	converted, err := v.convert(u, version.Version)
	if err != nil {
		return nil, err
	}
	// The error of the library has the first problem in random order.
	if _, err := v.types.ObjectToTyped(converted); err != nil {
		if problems := problemsIn(converted, v.types); len(problems) > 0 {
			return nil, errors.New(problems[0])
		}
		return nil, err
	}
	return converted, nil
}

func (versions) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

func (versions) Default(runtime.Object) {}

func (v versions) New(schema.GroupVersionKind) (runtime.Object, error) {
	return v.applier.empty(v.kind)
}
