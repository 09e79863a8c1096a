// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pageSize is the number of objects in one response.
const pageSize = 500

// indexes are the field indexes of a manager.
type indexes struct {
	names *indexedNames

	mu       sync.Mutex
	extracts map[indexID]client.IndexerFunc
}

// indexedNames are the names of the objects of a cluster, by namespace and by the value of a field.
type indexedNames struct {
	mu sync.Mutex
	of map[indexedNamespace]map[string][]client.ObjectKey
}

type indexID struct {
	kind  schema.GroupVersionKind
	field string
}

type indexedNamespace struct {
	indexID
	namespace string
}

// forget drops what is known about the objects of the cluster.
func (n *indexedNames) forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.of = map[indexedNamespace]map[string][]client.ObjectKey{}
}

func (x *indexes) add(kind schema.GroupVersionKind, field string, extract client.IndexerFunc) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	id := indexID{kind, field}
	if x.extracts[id] != nil {
		return fmt.Errorf("indexer conflict: field:%s", field)
	}
	x.extracts[id] = extract
	return nil
}

// requirement is one field and its value.
type requirement struct {
	field, value string
	extract      client.IndexerFunc
}

// requirements returns the fields of a selector, or nil unless all of them have an index.
func (x *indexes) requirements(kind schema.GroupVersionKind, options *client.ListOptions) (found []requirement) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if options.FieldSelector == nil {
		return nil
	}
	for _, r := range options.FieldSelector.Requirements() {
		extract := x.extracts[indexID{kind, r.Field}]
		if extract == nil || r.Operator != selection.Equals && r.Operator != selection.DoubleEquals {
			return nil
		}
		found = append(found, requirement{r.Field, r.Value, extract})
	}
	return found
}

// selector returns a function that reports whether the fields of an object match, or nil if no index is used.
func (x *indexes) selector(kind schema.GroupVersionKind, options *client.ListOptions) func(client.Object) bool {
	requirements := x.requirements(kind, options)
	if len(requirements) == 0 {
		return nil
	}
	return func(obj client.Object) bool {
		return !slices.ContainsFunc(requirements, func(r requirement) bool {
			return !slices.Contains(r.extract(obj), r.value)
		})
	}
}

// find returns the objects of the cluster that a selector with indexed fields selects.
func (x *indexes) find(
	ctx context.Context, cluster client.Client, kind schema.GroupVersionKind, list client.ObjectList,
	options *client.ListOptions,
) ([]runtime.Object, error) {
	selects := x.selector(kind, options)
	first := x.requirements(kind, options)[0]
	keys, err := x.names.keys(ctx, cluster, kind, list, options.Namespace, first)
	if err != nil {
		return nil, err
	}
	var found []runtime.Object
	for _, key := range keys {
		obj, err := item(kind, list)
		if err != nil {
			return nil, err
		}
		if err := cluster.Get(ctx, key, obj); apierrs.IsNotFound(err) {
			continue
		} else if err != nil {
			return nil, err
		}
		if selects(obj) &&
			(options.LabelSelector == nil || options.LabelSelector.Matches(labels.Set(obj.GetLabels()))) {
			found = append(found, obj)
		}
	}
	return found, nil
}

// keys returns the names of objects by the value of a field.
func (n *indexedNames) keys(
	ctx context.Context, cluster client.Client, kind schema.GroupVersionKind, list client.ObjectList, namespace string,
	by requirement,
) ([]client.ObjectKey, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	id := indexedNamespace{indexID{kind, by.field}, namespace}
	names := n.of[id]
	if names == nil {
		names = map[string][]client.ObjectKey{}
		page := reflect.New(reflect.TypeOf(list).Elem()).Interface().(client.ObjectList)
		page.GetObjectKind().SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := eachPage(ctx, cluster, page, &client.ListOptions{Namespace: namespace}, func(obj client.Object) error {
			for _, value := range by.extract(obj) {
				names[value] = append(names[value], client.ObjectKeyFromObject(obj))
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		n.of[id] = names
	}
	return names[by.value], nil
}

// item returns an empty object in the form of the items of a list.
func item(kind schema.GroupVersionKind, list client.ObjectList) (client.Object, error) {
	var obj client.Object
	switch list.(type) {
	case *unstructured.UnstructuredList:
		obj = &unstructured.Unstructured{}
	case *metav1.PartialObjectMetadataList:
		obj = &metav1.PartialObjectMetadata{}
	default:
		pointer, err := meta.GetItemsPtr(list)
		if err != nil {
			return nil, err
		}
		t := reflect.TypeOf(pointer).Elem().Elem()
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		made, ok := reflect.New(t).Interface().(client.Object)
		if !ok {
			return nil, fmt.Errorf("items of %T are not objects", list)
		}
		return made, nil
	}
	obj.GetObjectKind().SetGroupVersionKind(kind)
	return obj, nil
}

// eachPage calls a function for each object, and keeps one page in memory.
func eachPage(
	ctx context.Context, from client.Reader, list client.ObjectList, options *client.ListOptions,
	each func(client.Object) error,
) error {
	for next := ""; ; {
		paged := *options
		paged.Limit, paged.Continue = pageSize, next
		if err := from.List(ctx, list, &paged); err != nil {
			return err
		}
		if err := meta.EachListItem(list, func(item runtime.Object) error { return each(item.(client.Object)) }); err != nil {
			return err
		}
		if next = list.GetContinue(); next == "" {
			return nil
		}
	}
}
