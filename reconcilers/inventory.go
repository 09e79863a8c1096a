// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/engine/guard"
)

// inventory has the children below a [Prune] during one request. It is safe for concurrent use. All methods do nothing
// on a nil inventory.
type inventory struct {
	// key is the key of the label and the mark of children, and of the annotation of their parent.
	key string
	// value is the value of the label: the UID of the parent.
	value string
	wired *wiring
	// request is the context of the request.
	request context.Context

	mu     sync.Mutex
	record inventoryRecord
	// broken reports whether the annotation has no record.
	broken   bool
	claimed  map[schema.GroupKind]bool
	declared map[inventoryMember]bool
	// active are the finalizers of the reconcilers that ran.
	active []string
	// incomplete reports whether children may be missing in declared.
	incomplete bool
}

// inventoryMember identifies a child.
type inventoryMember struct {
	kind schema.GroupKind
	client.ObjectKey
}

// inventoryRecord is the content of the annotation. It says where children may exist. Lists are sorted.
type inventoryRecord struct {
	// Kinds are the kinds of children, as [schema.GroupKind.String] formats them.
	Kinds []string `json:"kinds,omitempty"`
	// Namespaces are the namespaces of children other than the namespace of the parent, or "*".
	Namespaces []string `json:"namespaces,omitempty"`
	// Finalizers are held on the parent while children exist.
	Finalizers []string `json:"finalizers,omitempty"`
}

// maxRecordedNamespaces limits the size of the annotation. More namespaces are recorded as "*".
const maxRecordedNamespaces = 20

func (r inventoryRecord) equal(other inventoryRecord) bool {
	return slices.Equal(r.Kinds, other.Kinds) && slices.Equal(r.Namespaces, other.Namespaces) &&
		slices.Equal(r.Finalizers, other.Finalizers)
}

// with returns the record with further values. Empty values are ignored.
func (r inventoryRecord) with(kinds, namespaces, finalizers []string) inventoryRecord {
	r.Kinds, r.Finalizers = union(r.Kinds, kinds), union(r.Finalizers, finalizers)
	if !slices.Contains(r.Namespaces, "*") {
		if r.Namespaces = union(r.Namespaces, namespaces); len(r.Namespaces) > maxRecordedNamespaces {
			r.Namespaces = []string{"*"}
		}
	}
	return r
}

// union returns the sorted names with the others. It does not change its arguments.
func union(names, others []string) []string {
	for _, name := range others {
		if at, found := slices.BinarySearch(names, name); !found && name != "" {
			names = slices.Insert(slices.Clone(names), at, name)
		}
	}
	return names
}

// read reads the record from the annotation. If that has been changed by hand and is not a record, the record is what
// set-up knows, so that neither a reconcile nor a deletion is blocked, and the error is returned.
func (i *inventory) read(resource client.Object) error {
	value, ok := resource.GetAnnotations()[i.key]
	if !ok {
		return nil
	}
	record := inventoryRecord{}
	if err := json.Unmarshal([]byte(value), &record); err != nil {
		i.broken = true
		kinds, finalizers := i.wired.members()
		i.record = inventoryRecord{Kinds: kinds, Finalizers: finalizers}
		return err
	}
	i.record = inventoryRecord{
		Kinds: union(nil, record.Kinds), Namespaces: union(nil, record.Namespaces), Finalizers: union(nil, record.Finalizers),
	}
	return nil
}

// write stores the record in the annotation, with a patch. The patch fails if the resource has changed since it was
// read. The caller holds the lock.
func (i *inventory) write(ctx context.Context, resource client.Object, record inventoryRecord) error {
	if record.equal(i.record) && !i.broken {
		return nil
	}
	value, err := json.Marshal(record)
	if err != nil {
		return err
	}
	current, config, err := identityAsLoaded(ctx, resource)
	if err != nil {
		return err
	}
	desired := current.DeepCopyObject().(client.Object)
	if old, ok := resource.GetAnnotations()[i.key]; ok {
		current.SetAnnotations(map[string]string{i.key: old})
	}
	desired.SetAnnotations(map[string]string{i.key: string(value)})
	logr.FromContextOrDiscard(ctx).V(1).Info("recording where children may exist", "annotation", i.key)
	patch := client.MergeFromWithOptions(current, client.MergeFromWithOptimisticLock{})
	if err := config.Patch(ctx, desired, patch); err != nil {
		return fmt.Errorf("record the kinds of children in the annotation %s: %w", i.key, err)
	}
	// Copy only the result of the patch. Reconcilers may have changed other fields in memory.
	annotations := maps.Clone(resource.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[i.key] = string(value)
	resource.SetAnnotations(annotations)
	resource.SetResourceVersion(desired.GetResourceVersion())
	resource.SetGeneration(desired.GetGeneration())
	i.record, i.broken = record, false
	return nil
}

// ran notes that a reconciler ran that holds a finalizer while children exist.
func (i *inventory) ran(finalizer string) {
	if i == nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.active = union(i.active, []string{finalizer})
}

// claim adds a desired child to the inventory before it is written.
func (i *inventory) claim(ctx context.Context, parent, childType, desired client.Object, finalizer string) error {
	if i == nil {
		return nil
	}
	gvk, err := RetrieveConfigOrDie(ctx).GroupVersionKindFor(childType)
	if err != nil {
		return err
	}
	desired.SetLabels(withEntry(desired.GetLabels(), i.key, i.value))
	desired.SetAnnotations(withEntry(
		desired.GetAnnotations(), i.key, newMark(gvk.GroupKind(), desired, parent).String(),
	))

	namespace := desired.GetNamespace()
	if namespace == parent.GetNamespace() {
		namespace = ""
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.claimed[gvk.GroupKind()] = true
	i.add(gvk.GroupKind(), desired)
	return i.write(ctx, parent, i.record.with(
		[]string{gvk.GroupKind().String()}, []string{namespace}, []string{finalizer},
	))
}

// add notes that an object is declared. The caller holds the lock.
func (i *inventory) add(kind schema.GroupKind, obj client.Object) {
	if obj.GetName() != "" {
		i.declared[inventoryMember{kind, client.ObjectKeyFromObject(obj)}] = true
	}
}

// declare notes the name of a child that was written. The API server may have generated it.
func (i *inventory) declare(ctx context.Context, childType, child client.Object) {
	if i == nil {
		return
	}
	if gvk, err := RetrieveConfigOrDie(ctx).GroupVersionKindFor(childType); err == nil {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.add(gvk.GroupKind(), child)
	}
}

// keep notes that a reconciler did not declare its children, so that nothing can be pruned after this request.
func (i *inventory) keep() {
	if i == nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.incomplete = true
}

func (i *inventory) isIncomplete() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.incomplete
}

// label keeps the label and the mark of a desired child if the author's function has not copied them.
func (i *inventory) label(current, desired client.Object) {
	if i == nil || desired.GetLabels()[i.key] != i.value {
		return
	}
	if current.GetLabels()[i.key] != i.value {
		current.SetLabels(withEntry(current.GetLabels(), i.key, i.value))
	}
	wanted, ok := i.markOf(desired)
	if !ok {
		return
	}
	if _, generated := wanted.prefix(); generated {
		// The child may have a name from before, with another prefix or none.
		kind := schema.ParseGroupKind(wanted.kind)
		if existing, ok := i.markOf(current); ok && existing.parent == wanted.parent && existing.owned == wanted.owned &&
			existing.names(kind, current) {
			return
		}
		if !wanted.names(kind, current) {
			wanted.namespace, wanted.name = current.GetNamespace(), current.GetName()
		}
	}
	if text := wanted.String(); current.GetAnnotations()[i.key] != text {
		current.SetAnnotations(withEntry(current.GetAnnotations(), i.key, text))
	}
}

// withEntry returns a copy of labels or annotations with one more.
func withEntry(entries map[string]string, key, value string) map[string]string {
	entries = maps.Clone(entries)
	if entries == nil {
		entries = map[string]string{}
	}
	entries[key] = value
	return entries
}

// has reports whether an object has the label: if it is not declared, it is pruned, or reported as a copy.
func (i *inventory) has(obj client.Object) bool {
	return i != nil && obj.GetLabels()[i.key] == i.value
}

// unlabel removes the label and the mark from an object, which is then not pruned.
func (i *inventory) unlabel(obj client.Object) {
	if !i.has(obj) {
		return
	}
	labels, annotations := maps.Clone(obj.GetLabels()), maps.Clone(obj.GetAnnotations())
	delete(labels, i.key)
	delete(annotations, i.key)
	obj.SetLabels(labels)
	obj.SetAnnotations(annotations)
}

func inventoryFrom(ctx context.Context) *inventory {
	if s, ok := ctx.Value(scopeKey{}).(*scope); ok {
		return s.inventory
	}
	return nil
}

// wiring has the kinds of the children that the reconcilers below a [Prune] manage. They are known after setup.
type wiring struct {
	key string

	mu    sync.Mutex
	kinds []wiredKind
	// names are the kinds as a record has them. It is sorted, and replaced by each change, like finalizers.
	names, finalizers []string
}

// wiredKind is a kind of children in the form in which it is cached.
type wiredKind struct {
	index ownerIndex
	list  client.ObjectList
}

func (k wiredKind) groupKind() schema.GroupKind { return k.index.kind.GroupKind() }

// add adds a kind and indexes it by the label of the inventory. It does nothing on a nil wiring.
func (w *wiring) add(
	ctx context.Context, config Config, bldr *Builder, form guard.Form, obj client.Object, list client.ObjectList,
	finalizer string,
) error {
	if w == nil {
		return nil
	}
	index := ownerIndex{field: inventoryIndexPrefix + w.key, kind: form}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.finalizers = union(w.finalizers, []string{finalizer})
	if !slices.ContainsFunc(w.kinds, func(k wiredKind) bool { return k.index == index }) {
		w.kinds = append(w.kinds, wiredKind{index: index, list: list})
		w.names = union(w.names, []string{form.GroupKind().String()})
	}
	return config.owners.setUp(ctx, bldr, index, obj)
}

// members returns the kinds, as a record has them, and the finalizers.
func (w *wiring) members() (kinds, finalizers []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.names, w.finalizers
}

// of returns the forms of a kind.
func (w *wiring) of(kind schema.GroupKind) []wiredKind {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.kinds), func(k wiredKind) bool { return k.groupKind() != kind })
}

type wiringKey struct{}

func withWiring(ctx context.Context, w *wiring) context.Context {
	return context.WithValue(ctx, wiringKey{}, w)
}

func wiringFrom(ctx context.Context) *wiring {
	w, _ := ctx.Value(wiringKey{}).(*wiring)
	return w
}
