// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// thing identifies an object by its name, or all objects whose names the API server has generated from one prefix.
type thing struct {
	kind      schema.GroupVersionKind
	namespace string
	name      string
	generated bool
}

func (t thing) String() string {
	name := t.name
	if t.generated {
		name += "*"
	}
	return t.kind.Kind + " " + nameOf(types.NamespacedName{Namespace: t.namespace, Name: name})
}

func thingOf(kind schema.GroupVersionKind, obj client.Object) thing {
	if generate := obj.GetGenerateName(); generate != "" && strings.HasPrefix(obj.GetName(), generate) {
		return thing{kind, obj.GetNamespace(), generate, true}
	}
	return thing{kind, obj.GetNamespace(), obj.GetName(), false}
}

// keyOf returns the key of an object in injection points. Generated names are replaced by their prefix, because they
// differ when other faults are injected.
func keyOf(obj client.Object) types.NamespacedName {
	key := client.ObjectKeyFromObject(obj)
	if t := thingOf(schema.GroupVersionKind{}, obj); t.generated {
		key.Name = t.name + "*"
	}
	return key
}
