// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"trueup.dev/internal/objects/nilcheck"
)

// Kind is a kind of objects in one version. Kinds with the same Schema are the same.
type Kind struct {
	Schema

	// Codecs read and write objects in [Kind.Read] and [Kind.Write]. Optional. Clients, caches and webhooks always use
	// encoding/json: [Kind.Validate] returns an error for a codec of [KindEncodingJSON] that encodes or decodes objects
	// in another way.
	Codecs map[KindEncoding]Codec
}

// GroupVersionKind returns group, version and name of the kind.
func (k Kind) GroupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: k.Group(), Version: k.Version(), Kind: k.Kind()}
}

// GroupKind returns group and name of the kind.
func (k Kind) GroupKind() schema.GroupKind {
	return k.GroupVersionKind().GroupKind()
}

// GroupVersionResource returns the resource of the kind in API paths.
func (k Kind) GroupVersionResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: k.Group(), Version: k.Version(), Resource: k.Plural()}
}

// FullIdentifier returns the identifier of an object of this kind among all objects in a cluster.
func (k Kind) FullIdentifier(id Identifier) FullIdentifier {
	return FullIdentifier{
		Namespace: id.Namespace, Name: id.Name, Group: k.Group(), Version: k.Version(), Kind: k.Kind(), Plural: k.Plural(),
	}
}

// String returns "Kind.version.group", or "Kind.version" in the core group. A [Store] identifies kinds by this name.
func (k Kind) String() string {
	return strings.TrimSuffix(k.Kind()+"."+k.Version()+"."+k.Group(), ".")
}

// Validate returns an error that lists every problem of the kind.
func (k Kind) Validate() error {
	if nilcheck.IsNilPointer(k.Schema) {
		return errors.New("kind must define Schema")
	}
	problems := []error{}
	check := func(field, value string, valid func(string) []string) {
		if value == "" {
			problems = append(problems, fmt.Errorf("kind %s must define %s", k, field))
			return
		}
		for _, problem := range valid(value) {
			problems = append(problems, fmt.Errorf("kind %s has an invalid %s %q: %s", k, field, value, problem))
		}
	}
	if k.Group() != "" {
		check("Group", k.Group(), validation.IsDNS1123Subdomain)
	}
	check("Version", k.Version(), validation.IsDNS1035Label)
	check("Kind", k.Kind(), func(kind string) []string { return validation.IsDNS1035Label(strings.ToLower(kind)) })
	check("Plural", k.Plural(), validation.IsDNS1035Label)
	if scopes := []SchemaScope{NamespacedScope, ClusterScope}; !slices.Contains(scopes, k.Scope()) {
		problems = append(problems, fmt.Errorf("kind %s has an invalid Scope %q: must be one of %q", k, k.Scope(), scopes))
	}
	if problems = append(problems, k.validateValues()...); len(problems) == 0 {
		problems = append(problems, k.validateCodec())
	}
	return errors.Join(problems...)
}

// validateValues returns the problems of the Go types of objects and lists.
func (k Kind) validateValues() []error {
	object, list := k.ZeroValue(), k.ZeroListValue()
	problems := []error{}
	if nilcheck.IsNilPointer(object) {
		problems = append(problems, fmt.Errorf("kind %s must define ZeroValue", k))
	}
	if nilcheck.IsNilPointer(list) {
		problems = append(problems, fmt.Errorf("kind %s must define ZeroListValue", k))
	}
	if len(problems) > 0 {
		return problems
	}
	items, ok := reflect.TypeOf(list).Elem().FieldByName("Items")
	if !ok || items.Type.Kind() != reflect.Slice {
		return append(problems, fmt.Errorf("kind %s must define ZeroListValue with a slice of Items, not %T", k, list))
	}
	item := items.Type.Elem()
	if item.Kind() != reflect.Pointer {
		item = reflect.PointerTo(item)
	}
	if want := reflect.TypeOf(object); item != want {
		problems = append(
			problems, fmt.Errorf("kind %s must define ZeroListValue that lists %s, %T lists %s", k, want, list, item),
		)
	}
	return problems
}

// AddToScheme registers the Go types of the kind's objects and lists. Kinds whose objects are unstructured or
// metadata-only need no registration and are skipped.
func (k Kind) AddToScheme(scheme *runtime.Scheme) error {
	return AddToScheme(scheme, k)
}

// AddToScheme registers the Go types of objects and lists of several kinds. It does not register a kind that is
// invalid, whose name is registered with another Go type, or whose Go type is registered as another kind: clients could
// not determine the kind of such an object.
func AddToScheme(scheme *runtime.Scheme, kinds ...Kind) error {
	problems := []error{}
	for _, kind := range kinds {
		if err := kind.Validate(); err != nil {
			problems = append(problems, err)
			continue
		}
		object, list := kind.ZeroValue(), kind.ZeroListValue()
		switch object.(type) {
		case runtime.Unstructured, *metav1.PartialObjectMetadata:
			continue
		}
		gvk := kind.GroupVersionKind()
		if err := errors.Join(registrable(scheme, gvk, object), registrable(scheme, listKind(gvk), list)); err != nil {
			problems = append(problems, err)
			continue
		}
		// The kinds need explicit names, because the names of generic Go types are not valid.
		scheme.AddKnownTypeWithName(gvk, object)
		scheme.AddKnownTypeWithName(listKind(gvk), list)
		metav1.AddToGroupVersion(scheme, gvk.GroupVersion())
	}
	return errors.Join(problems...)
}

// registrable returns an error if the Go type of obj cannot be registered as gvk. The scheme itself would panic or
// accept it.
func registrable(scheme *runtime.Scheme, gvk schema.GroupVersionKind, obj runtime.Object) error {
	if scheme.Recognizes(gvk) {
		if known, err := scheme.New(gvk); err != nil || reflect.TypeOf(known) != reflect.TypeOf(obj) {
			return fmt.Errorf("kind %s cannot be %T: the scheme has this kind as %T", gvk, obj, known)
		}
	}
	known, _, err := scheme.ObjectKinds(obj)
	if err != nil && !runtime.IsNotRegisteredError(err) {
		return fmt.Errorf("kind %s: %w", gvk, err)
	}
	for _, other := range known {
		if other != gvk {
			return fmt.Errorf("kind %s cannot be %T: the scheme has that type as %s, define a separate type", gvk, obj, other)
		}
	}
	return nil
}

// is reports whether obj is of this kind, or has no kind set.
func (k Kind) is(obj Object) bool {
	if reflect.TypeOf(obj) != reflect.TypeOf(k.ZeroValue()) {
		return false
	}
	gvk := obj.GetObjectKind().GroupVersionKind()
	return gvk.Empty() || gvk == k.GroupVersionKind()
}

// object returns a new object of the kind with the identifier.
func (k Kind) object(id Identifier) Object {
	obj := k.ZeroValue()
	obj.SetNamespace(id.Namespace)
	obj.SetName(id.Name)
	return obj
}

// checkNamespace returns an error if the kind is namespaced and the namespace is empty, or the other way round.
func (k Kind) checkNamespace(namespace string) error {
	switch namespaced := k.Scope() == NamespacedScope; {
	case namespaced && namespace == "":
		return fmt.Errorf("kind %s is namespaced: namespace is required", k)
	case !namespaced && namespace != "":
		return fmt.Errorf("kind %s is cluster-scoped: namespace must be empty, got %q", k, namespace)
	}
	return nil
}
