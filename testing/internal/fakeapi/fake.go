// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgotesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// Options describe a fake API.
type Options struct {
	// Scheme has the Go types of objects. Kinds that it does not have can be used with unstructured objects. Required.
	Scheme *runtime.Scheme
	// Given are the objects that exist from the start. They belong to the API afterwards, must be valid (see
	// [ValidateGiven]) and of a Go type of the scheme or unstructured.
	Given []client.Object
	// StatusSubresources are objects of the kinds that have a status subresource, besides the kinds of Kubernetes.
	StatusSubresources []client.Object
	// Build changes the builder of the client. Nil changes nothing. It must not return nil.
	Build func(*fake.ClientBuilder) *fake.ClientBuilder
	// Mapper is the REST mapper of the client. Nil is the one that the fake client derives from the scheme.
	Mapper meta.RESTMapper
	// Realistic makes writes behave more as on a server.
	Realistic bool
}

// New returns a client of a new fake API with the given objects, and the tracker to add further ones to. It returns an
// error if the client cannot be built.
func New(o Options) (client.WithWatch, clientgotesting.ObjectTracker, error) {
	s := newStore(o)
	adding := &building{store: s}
	builder := fake.NewClientBuilder().WithScheme(o.Scheme).WithObjectTracker(adding).
		WithStatusSubresource(o.StatusSubresources...).WithObjects(o.Given...)
	if o.Mapper != nil {
		builder.WithRESTMapper(o.Mapper)
	}
	if slices.ContainsFunc(o.Given, isApplied) {
		builder.WithReturnManagedFields()
	}
	if o.Build != nil {
		if builder = o.Build(builder); builder == nil {
			return nil, nil, errors.New("WithClientBuilder returns nil")
		}
	}
	// a builder can only build one client
	another := *builder
	known, err := build(builder)
	if err != nil {
		return nil, nil, err
	}
	adding.done = true
	c := routeKinds(known, sync.OnceValue(func() client.WithWatch {
		others, err := build(another.WithScheme(copyScheme(known.Scheme())))
		if err != nil {
			// The builder of the case has its own tracker, which already has the objects, so a second client cannot be built.
			return known
		}
		return others
	}))
	c = s.interceptApplies(c)
	if s.realism != nil {
		c = s.realism.intercept(c, s)
	}
	return c, s, nil
}

// isApplied reports whether a field owner has applied fields of an object. Reconcilers that apply must see them.
// Without such an object, the fake client hides managed fields.
func isApplied(obj client.Object) bool {
	return slices.ContainsFunc(obj.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Operation == metav1.ManagedFieldsOperationApply
	})
}

// build calls Build, and returns an error if it panics.
func build(builder *fake.ClientBuilder) (c client.WithWatch, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("unable to build the fake client: %v", r)
		}
	}()
	return builder.Build(), nil
}

// building is the store while the first client is built. Clients that are built later find the objects in it.
type building struct {
	*store
	done bool
}

// Add adds an object for the first client only.
func (b *building) Add(obj runtime.Object) error {
	if b.done {
		return nil
	}
	return b.store.Add(obj)
}

// ValidateGiven returns an error for each object that cannot be stored. Errors name objects by their index.
func ValidateGiven(objs []client.Object, scheme *runtime.Scheme) error {
	type identity struct{ kind, namespace, name string }
	seen := map[identity]int{}
	var problems []error
	for i, obj := range objs {
		gvk, err := apiutil.GVKForObject(obj, scheme)
		if err != nil {
			problems = append(problems, fmt.Errorf("[%d]: %w", i, err))
			continue
		}
		id := identity{gvk.String(), obj.GetNamespace(), obj.GetName()}
		if first, ok := seen[id]; ok {
			problems = append(
				problems, fmt.Errorf("[%d]: %s %s is the same object as [%d]", i, gvk.Kind, client.ObjectKeyFromObject(obj), first),
			)
			continue
		}
		seen[id] = i
		if obj.GetDeletionTimestamp() != nil && len(obj.GetFinalizers()) == 0 {
			problems = append(problems, fmt.Errorf("[%d]: %s %s has a deletion timestamp but no finalizers, so it would "+
				"no longer exist",
				i, gvk.Kind, client.ObjectKeyFromObject(obj)))
		}
	}
	return errors.Join(problems...)
}
