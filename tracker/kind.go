// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kind holds the targets of one kind of object.
type kind struct {
	schema.GroupKind
	// exact holds the objects watched by name.
	exact table[types.NamespacedName, *target]
	// selected holds the targets watched by selector. The name is the identity of the selector.
	selected table[types.NamespacedName, *target]
	// inNamespace and anywhere find the selectors for an object: those limited to a namespace, and those that are not.
	inNamespace, anywhere index
}

// target returns the target of the reference, nil if it has no observers. The identity is the identity of the selector
// of the reference, if it has one.
func (k *kind) target(ref Reference, identity []byte) *target {
	if ref.Selector == nil {
		return k.exact.entries[types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}]
	}
	return k.selected.entries[types.NamespacedName{Namespace: ref.Namespace, Name: string(identity)}]
}

// add returns a new target for the reference.
func (k *kind) add(ref Reference, identity []byte) *target {
	if ref.Selector == nil {
		on := &target{kind: k, name: types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}}
		k.exact.put(on.name, on)
		return on
	}
	var selected struct { // one allocation
		selection
		target
	}
	on := &selected.target
	on.kind, on.selection = k, &selected.selection
	on.name = types.NamespacedName{Namespace: ref.Namespace, Name: string(identity)}
	k.selected.put(on.name, on)
	if ref.Namespace == "" {
		k.anywhere.add(on, ref.Selector)
	} else {
		k.inNamespace.add(on, ref.Selector)
	}
	return on
}

func (k *kind) remove(on *target) {
	if on.selection == nil {
		k.exact.remove(on.name)
		return
	}
	k.selected.remove(on.name)
	for i := range on.selection.postings {
		post := &on.selection.postings[i]
		post.in.remove(post)
	}
}

func (k *kind) empty() bool { return len(k.exact.entries)+len(k.selected.entries) == 0 }

// find adds the observers of an object of this kind.
func (k *kind) find(obj client.Object, found *finding) {
	name := client.ObjectKeyFromObject(obj)
	if on := k.exact.entries[name]; on != nil {
		found.add(on)
	}
	if len(k.selected.entries) == 0 {
		return
	}
	set := labels.Set(obj.GetLabels())
	k.anywhere.find("", set, found)
	if name.Namespace != "" {
		k.inNamespace.find(name.Namespace, set, found)
	}
}
