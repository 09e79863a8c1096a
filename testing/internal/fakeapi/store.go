// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgotesting "k8s.io/client-go/testing"
)

// store holds the objects of all fake clients of an API: in the Go type that the scheme has for their kind, or
// unstructured if it has none.
type store struct {
	clientgotesting.ObjectTracker
	scheme *runtime.Scheme
	// realism is nil if the API is not realistic.
	realism *realism
	// applies are the apply calls in progress.
	applies sync.Map // of *bool to *applyCall
}

func newStore(o Options) *store {
	s := &store{
		// lists are split here, so the tracker needs no decoder for their items
		ObjectTracker: clientgotesting.NewObjectTracker(unstructuredKinds{o.Scheme}, nil),
		scheme:        o.Scheme,
	}
	if o.Realistic {
		s.realism = newRealism(o)
	}
	return s
}

// Add adds an object, or the objects of a list, as given objects.
func (s *store) Add(obj runtime.Object) error {
	if meta.IsListType(obj) {
		return meta.EachListItem(obj, s.Add)
	}
	if s.realism != nil {
		s.realism.given(obj)
	}
	return s.ObjectTracker.Add(obj)
}

// Create stores an object that a client creates.
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

// Update stores an object that a client updates.
func (s *store) Update(
	gvr schema.GroupVersionResource, obj runtime.Object, ns string, opts ...metav1.UpdateOptions,
) error {
	var options metav1.UpdateOptions
	if len(opts) > 0 {
		options = opts[0]
	}
	return s.replace(gvr, obj, ns, &options.FieldManager)
}

// Patch stores an object that a client patches.
func (s *store) Patch(
	gvr schema.GroupVersionResource, obj runtime.Object, ns string, opts ...metav1.PatchOptions,
) error {
	var options metav1.PatchOptions
	if len(opts) > 0 {
		options = opts[0]
	}
	return s.replace(gvr, obj, ns, &options.FieldManager)
}

// replace stores an object in place of another one. The changed fields belong to the manager, which is nil if the
// object has its managed fields already.
func (s *store) replace(gvr schema.GroupVersionResource, obj runtime.Object, ns string, manager *string) error {
	if s.realism != nil {
		if unchanged, err := s.realism.updated(s, gvr, obj, ns, manager); err != nil || unchanged {
			return err
		}
	}
	return s.ObjectTracker.Update(gvr, obj, ns)
}

// typed converts an unstructured object to the form in which it is stored.
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

// untyped returns an unstructured copy of an object.
func untyped(obj runtime.Object, gvk schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj.DeepCopyObject())
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	return u, nil
}
