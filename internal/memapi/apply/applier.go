// SPDX-License-Identifier: Apache-2.0

package apply

import (
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

// Applier knows who owns which fields. It is safe for concurrent use, and may be shared by any number of servers.
type Applier struct {
	registry *kinds.Registry

	memory   memory
	mu       sync.RWMutex
	managers map[endpoint]*fieldManager
}

// fieldManager is what knows the fields of a kind at one of its endpoints.
type fieldManager struct {
	*managedfields.FieldManager
	converter managedfields.TypeConverter
}

// endpoint is where an object is written.
type endpoint struct {
	kind        *kinds.Kind
	subresource string
}

// New returns an applier for the kinds of a registry. What it knows of a kind is made when it is first needed.
func New(registry *kinds.Registry) *Applier {
	return &Applier{registry: registry, managers: map[endpoint]*fieldManager{}}
}

// Apply returns what becomes of a live object when a manager applies a configuration. The live object is nil if there
// is none yet. Fields that the manager has applied before, and does no longer, are removed unless somebody else owns
// them, too.
//
// Fields that somebody else owns can only be changed by force: otherwise Apply fails with a conflict that lists them.
// Other errors are those of a bad request if they have a status, and of the server's own if they do not. The result is
// of the type the scheme has for the kind, or unstructured if it is of a custom kind and its type cannot hold it, which
// is for the schema to refuse. It is neither defaulted nor validated. It shares nothing with the arguments, which are
// not changed.
func (a *Applier) Apply(
	live client.Object, patch *unstructured.Unstructured, manager string, force bool, subresource string, now time.Time,
) (client.Object, error) {
	if patch.GetResourceVersion() != "" {
		return a.apply(live, patch, manager, force, subresource, now)
	}
	r := request{applied: true, force: force, manager: manager, subresource: subresource}
	return a.memory.recall(r, live, patch, live, now, func() (client.Object, error) {
		return a.apply(live, patch, manager, force, subresource, now)
	})
}

func (a *Applier) apply(
	live client.Object, patch *unstructured.Unstructured, manager string, force bool, subresource string, now time.Time,
) (client.Object, error) {
	k, ok := a.registry.For(patch.GroupVersionKind())
	if live != nil {
		k, ok = a.kindOf(live)
	}
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%s is not served", patch.GroupVersionKind()))
	}
	fields, err := a.manager(k, subresource)
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

// Update returns an updated object with the managed fields it has after a request of a manager other than apply. The
// live object is nil if the updated one is created. Neither of them is changed.
//
// Managed fields of the updated object are taken for an attempt to change them: it should have those of the live one.
func (a *Applier) Update(
	live, updated client.Object, manager, subresource string, now time.Time,
) (client.Object, error) {
	r := request{manager: manager, subresource: subresource}
	return a.memory.recall(r, live, updated, updated, now, func() (client.Object, error) {
		return a.update(live, updated, manager, subresource, now)
	})
}

func (a *Applier) update(
	live, updated client.Object, manager, subresource string, now time.Time,
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
	fields, err := a.manager(k, subresource)
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
	obj.SetManagedFields(fields.UpdateNoErrors(before, after, manager).(metav1.Object).GetManagedFields())
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

// manager returns the field manager of an endpoint, which is made when it is first needed.
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
	version := oneVersion{a, k}
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
	fields = &fieldManager{FieldManager: made, converter: converter}
	a.managers[at] = fields
	return fields, nil
}

// versioned returns a copy of an object that says its kind, or an empty object for none.
func (a *Applier) versioned(k *kinds.Kind, obj client.Object) (client.Object, error) {
	if obj == nil {
		return a.empty(k)
	}
	obj = obj.DeepCopyObject().(client.Object)
	obj.GetObjectKind().SetGroupVersionKind(k.GroupVersionKind)
	return obj, nil
}

// empty returns what a server starts from when it creates an object: a custom resource does not even have the fields
// that its Go type always writes.
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

// typed returns an object as the type the scheme has for its kind, if that can hold all of it. For custom kinds it is
// the schema that has to tell what is wrong.
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

// emptyNulls makes empty what is null in the metadata of an object, because something else that was in it is not
// applied any more: metadata in Go has no nulls, and a server does tell it from what is not there.
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

// holds reports whether an object has all fields of the content that it was made of, if only those that are not omitted
// when they are empty.
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

// contains reports whether content has a field, and all that is in it. A null is there.
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

// stamp gives entries that were not there before the time of a server, and puts all of them in the order of a server,
// of which time is a part.
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

// oneVersion is what field managers need of a scheme in which all objects are of the version they are stored in.
type oneVersion struct {
	applier *Applier
	kind    *kinds.Kind
}

func (oneVersion) Convert(_, _, _ any) error { return nil }

func (oneVersion) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

func (oneVersion) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

func (oneVersion) Default(runtime.Object) {}

func (v oneVersion) New(schema.GroupVersionKind) (runtime.Object, error) {
	return v.applier.empty(v.kind)
}
