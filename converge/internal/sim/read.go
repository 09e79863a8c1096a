// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fieldselectors "k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/judge"
)

// index is a field index of the cache.
type index struct {
	kind    schema.GroupVersionKind
	field   string
	extract client.IndexerFunc
	// ended is set when the informer of the kind was removed: the index may be registered again.
	ended bool
}

// read answers a Get as the cache of a manager does.
func (i *informer) read(
	gvk schema.GroupVersionKind, key types.NamespacedName, out client.Object, opts ...client.GetOption,
) error {
	obj := i.get(key)
	if obj == nil {
		// As in a manager's cache, the error names the kind instead of the resource.
		return apierrs.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, key.Name)
	}
	options := (&client.GetOptions{}).ApplyOptions(opts)
	shared := options.UnsafeDisableDeepCopy != nil && *options.UnsafeDisableDeepCopy
	if shared {
		obj = i.share(obj)
	}
	return copyTo(out, gvk, obj, shared)
}

// copyTo fills an object with a copy of another one, or with the other one itself.
func copyTo(out client.Object, gvk schema.GroupVersionKind, obj client.Object, shared bool) error {
	if partial, ok := out.(*metav1.PartialObjectMetadata); ok {
		*partial = *metadataOf(gvk, obj)
		return nil
	}
	if !shared {
		obj = obj.DeepCopyObject().(client.Object)
	}
	to, from := reflect.ValueOf(out), reflect.ValueOf(obj)
	if from.Type() != to.Type() {
		return fmt.Errorf("cache had type %s, but %s was asked for", from.Type(), to.Type())
	}
	to.Elem().Set(from.Elem())
	if !shared {
		out.GetObjectKind().SetGroupVersionKind(gvk)
	}
	return nil
}

func metadataOf(gvk schema.GroupVersionKind, obj client.Object) *metav1.PartialObjectMetadata {
	partial := meta.AsPartialObjectMetadata(obj).DeepCopy()
	partial.SetGroupVersionKind(gvk)
	return partial
}

// list answers a List as the cache of a manager does.
func (p *Process) list(gvk schema.GroupVersionKind, out client.ObjectList, options *client.ListOptions) error {
	if options.Continue != "" {
		return errors.New("continue list option is not supported by the cache")
	}
	i := p.informer(gvk)
	matches, err := p.byFields(gvk, options.FieldSelector)
	if err != nil {
		return err
	}
	_, partial := out.(*metav1.PartialObjectMetadataList)
	shared := options.UnsafeDisableDeepCopy != nil && *options.UnsafeDisableDeepCopy
	var found []runtime.Object
	for _, obj := range p.ordered(i) {
		switch {
		case options.Namespace != "" && obj.GetNamespace() != options.Namespace:
		case options.LabelSelector != nil && !options.LabelSelector.Matches(labels.Set(obj.GetLabels())):
		case !matches(obj):
		case partial:
			found = append(found, metadataOf(gvk, obj))
		case shared:
			found = append(found, i.share(obj))
		default:
			item := obj.DeepCopyObject()
			item.GetObjectKind().SetGroupVersionKind(gvk)
			found = append(found, item)
		}
		if options.Limit > 0 && int64(len(found)) >= options.Limit {
			break
		}
	}
	if found == nil {
		found = []runtime.Object{}
	}
	if err := meta.SetList(out, found); err != nil {
		return err
	}
	out.SetContinue("continue-not-supported")
	return nil
}

// ordered returns the objects of a cache: sorted, or in an order that changes each time.
func (p *Process) ordered(i *informer) []client.Object {
	if p.listOrder == 0 || len(i.objects) < 2 {
		return i.objects
	}
	// Another object is the first one each time.
	n := (int(i.reads.Add(1)) + p.listOrder) % len(i.objects)
	objects := slices.Concat(i.objects[n:], i.objects[:n])
	slices.Reverse(objects)
	return objects
}

// byFields returns a function that reports whether a field selector selects an object. The cache must have indexes of
// the fields.
func (p *Process) byFields(
	gvk schema.GroupVersionKind, selector fieldselectors.Selector,
) (func(client.Object) bool, error) {
	if selector == nil || selector.Empty() {
		return func(client.Object) bool { return true }, nil
	}
	requirements := selector.Requirements()
	extracts := make([]client.IndexerFunc, 0, len(requirements))
	for _, requirement := range requirements {
		if requirement.Operator != selection.Equals && requirement.Operator != selection.DoubleEquals {
			return nil, errors.New("non-exact field matches are not supported by the cache")
		}
		at := slices.IndexFunc(p.indexes, func(x index) bool { return x.kind == gvk && x.field == requirement.Field })
		if at < 0 {
			return nil, fmt.Errorf("Index with name field:%s does not exist", requirement.Field)
		}
		extracts = append(extracts, p.indexes[at].extract)
	}
	return func(obj client.Object) bool {
		for n, requirement := range requirements {
			if !slices.Contains(extracts[n](obj), requirement.Value) {
				return false
			}
		}
		return true
	}, nil
}

// share returns a copy of an object that is the same for all reads of this cache, as if it were the cache's own.
func (i *informer) share(obj client.Object) client.Object {
	i.sharing.Lock()
	defer i.sharing.Unlock()
	for _, s := range i.shared {
		if s.Stored == obj || s.Given == obj {
			return s.Given
		}
	}
	given := obj.DeepCopyObject().(client.Object)
	i.shared = append(i.shared, judge.Shared{Given: given, Stored: obj})
	return given
}
