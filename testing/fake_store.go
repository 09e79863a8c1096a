// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgotesting "k8s.io/client-go/testing"
)

// store is where the fake clients of an API keep their objects: in the Go type that the scheme has for their kind,
// unstructured if it has none.
type store struct {
	clientgotesting.ObjectTracker
	scheme *runtime.Scheme
	// realism is nil unless the store is to behave more like a server.
	realism *realism
	// applies are the calls in progress.
	applies sync.Map // of *bool to *applyCall
}

func newStore(o fakeOptions) *store {
	s := &store{
		// lists are taken apart here, so the tracker needs no decoder for their items
		ObjectTracker: clientgotesting.NewObjectTracker(unstructuredKinds{o.scheme}, nil),
		scheme:        o.scheme,
	}
	if o.realistic {
		s.realism = newRealism(o)
	}
	return s
}

// Add adds an object, or those of a list, as if they had been there from the start.
func (s *store) Add(obj runtime.Object) error {
	if meta.IsListType(obj) {
		return meta.EachListItem(obj, s.Add)
	}
	if s.realism != nil {
		s.realism.given(obj)
	}
	return s.ObjectTracker.Add(obj)
}

// Create adds an object that was created by a client.
func (s *store) Create(
	gvr schema.GroupVersionResource, obj runtime.Object, ns string, opts ...metav1.CreateOptions,
) error {
	if s.realism != nil {
		if err := s.realism.created(s, gvr, obj, ns); err != nil {
			return err
		}
	}
	return s.ObjectTracker.Create(gvr, obj, ns, opts...)
}

// Update replaces an object by one that was updated by a client.
func (s *store) Update(
	gvr schema.GroupVersionResource, obj runtime.Object, ns string, opts ...metav1.UpdateOptions,
) error {
	var options metav1.UpdateOptions
	if len(opts) > 0 {
		options = opts[0]
	}
	return s.replace(gvr, obj, ns, &options.FieldManager)
}

// Patch replaces an object by one that was patched by a client.
func (s *store) Patch(
	gvr schema.GroupVersionResource, obj runtime.Object, ns string, opts ...metav1.PatchOptions,
) error {
	var options metav1.PatchOptions
	if len(opts) > 0 {
		options = opts[0]
	}
	return s.replace(gvr, obj, ns, &options.FieldManager)
}

// replace replaces an object. The manager is that of the fields that change, nil if the object tells it.
func (s *store) replace(gvr schema.GroupVersionResource, obj runtime.Object, ns string, manager *string) error {
	if s.realism != nil {
		if unchanged, err := s.realism.updated(s, gvr, obj, ns, manager); err != nil || unchanged {
			return err
		}
	}
	return s.ObjectTracker.Update(gvr, obj, ns)
}

// typed returns an unstructured object as it is stored.
func (s *store) typed(u *unstructured.Unstructured) (runtime.Object, error) {
	if !s.scheme.Recognizes(u.GroupVersionKind()) {
		return u, nil
	}
	obj, err := s.scheme.New(u.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	if _, ok := obj.(runtime.Unstructured); ok {
		return u, nil
	}
	return obj, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, obj)
}

// untyped returns a copy of an object as an unstructured one.
func untyped(obj runtime.Object, gvk schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj.DeepCopyObject())
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	return u, nil
}
