// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/engine/ownership"
)

// mark is the annotation of an object in an inventory. It names the object itself. So a copy of the object, with its
// labels and annotations, has the mark of another object: one of another kind, in another namespace or with another
// name.
type mark struct {
	kind, namespace string
	// name is the name, or if the API server generates it, the prefix and "*".
	name string
	// parent is the UID of the resource whose inventory it is.
	parent string
	// owned reports whether the object was declared with an owner reference to the resource.
	owned bool
}

const (
	ownedMark = "owned"
	// anyName stands for the generated end of a name. No name has it.
	anyName = "*"
)

// newMark returns the mark of a declared object.
func newMark(kind schema.GroupKind, desired, parent client.Object) mark {
	m := mark{
		kind: kind.String(), namespace: desired.GetNamespace(), name: desired.GetName(),
		parent: string(parent.GetUID()), owned: isOwnedBy(desired, parent),
	}
	if m.name == "" {
		m.name = generatedPrefix(desired) + anyName
	}
	return m
}

func (m mark) String() string {
	parts := []string{m.kind, m.namespace, m.name, m.parent}
	if m.owned {
		parts = append(parts, ownedMark)
	}
	return strings.Join(parts, "/")
}

// parseMark returns the mark that a text is, or false.
func parseMark(text string) (mark, bool) {
	parts := strings.Split(text, "/")
	owned := len(parts) == 5 && parts[4] == ownedMark
	if len(parts) != 4 && !owned {
		return mark{}, false
	}
	return mark{kind: parts[0], namespace: parts[1], name: parts[2], parent: parts[3], owned: owned}, true
}

// prefix returns the prefix of a name that the API server has generated.
func (m mark) prefix() (prefix string, generated bool) { return strings.CutSuffix(m.name, anyName) }

// names reports whether it is the mark of an object.
func (m mark) names(kind schema.GroupKind, obj client.Object) bool {
	if m.kind != kind.String() || m.namespace != obj.GetNamespace() {
		return false
	}
	if prefix, generated := m.prefix(); generated {
		return strings.HasPrefix(obj.GetName(), prefix)
	}
	return m.name == obj.GetName()
}

// markOf returns the mark of an object, and whether it has one. A mark that cannot be read names no object.
func (i *inventory) markOf(obj client.Object) (m mark, marked bool) {
	text, marked := obj.GetAnnotations()[i.key]
	m, _ = parseMark(text)
	return m, marked
}

// made reports whether an object with the label is one that was declared, and no copy of one.
//
// A mark for a generated name also fits copies in the namespace. An object without a mark may have its label from a
// version of this module that set none. For both, the managed fields tell who has set it.
func (i *inventory) made(kind schema.GroupKind, obj client.Object) bool {
	m, marked := i.markOf(obj)
	if !marked {
		owner := metav1.GetControllerOfNoCopy(obj)
		return owner != nil && string(owner.UID) == i.value || i.wrote(obj, "f:labels")
	}
	if m.parent != i.value || !m.names(kind, obj) {
		return false
	}
	_, generated := m.prefix()
	return !generated || i.wrote(obj, "f:annotations")
}

// wrote reports whether the managed fields say that this controller, or a former one, has set the label or the mark.
// Objects without any managed fields exist in table tests, and in caches that remove them: a cached object is read
// again before it is deleted.
func (i *inventory) wrote(obj client.Object, where string) bool {
	entries := obj.GetManagedFields()
	if len(entries) == 0 {
		return true
	}
	owners := append(slices.Clone(RetrieveOriginalConfigOrDie(i.request).formerFieldOwners()), fieldOwner(i.request))
	return slices.ContainsFunc(entries, func(entry metav1.ManagedFieldsEntry) bool {
		if entry.Manager == "" || !slices.Contains(owners, entry.Manager) {
			return false
		}
		metadata, _ := ownership.FieldsOf(entry)["f:metadata"].(map[string]any)
		fields, _ := metadata[where].(map[string]any)
		_, ok := fields["f:"+i.key]
		return ok
	})
}
