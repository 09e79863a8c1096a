// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clientgotesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// fakeOptions describe a fake API.
type fakeOptions struct {
	scheme             *runtime.Scheme
	given              []client.Object
	statusSubResources []client.Object
	build              func(*fake.ClientBuilder) *fake.ClientBuilder
	mapper             meta.RESTMapper
	realistic          bool
}

// newFake returns a client of a new fake API with the given objects, and the tracker to add further ones to. The
// objects belong to the API afterwards, are as givenObject returns them, and valid.
func newFake(o fakeOptions) (client.WithWatch, clientgotesting.ObjectTracker, error) {
	s := newStore(o)
	adding := &building{store: s}
	builder := fake.NewClientBuilder().WithScheme(o.scheme).WithObjectTracker(adding).
		WithStatusSubresource(o.statusSubResources...).WithObjects(o.given...)
	if o.mapper != nil {
		builder.WithRESTMapper(o.mapper)
	}
	if o.build != nil {
		if builder = o.build(builder); builder == nil {
			return nil, nil, errors.New("WithClientBuilder returns nil")
		}
	}
	// a client can only be built once by a builder
	another := *builder
	known, err := build(builder)
	if err != nil {
		return nil, nil, err
	}
	adding.done = true
	c := routeKinds(known, sync.OnceValue(func() client.WithWatch {
		others, err := build(another.WithScheme(copyScheme(known.Scheme())))
		if err != nil {
			// the builder has a tracker that is not ours, where its objects exist already
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

// build is Build with an error instead of a panic.
func build(builder *fake.ClientBuilder) (c client.WithWatch, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("unable to build the fake client: %v", r)
		}
	}()
	return builder.Build(), nil
}

// building is the store while the first client is built. Further clients find the objects there already.
type building struct {
	*store
	done bool
}

// Add adds an object once.
func (b *building) Add(obj runtime.Object) error {
	if b.done {
		return nil
	}
	return b.store.Add(obj)
}

// validateGiven returns everything that keeps objects from being stored. Errors name them by their index.
func validateGiven(objs []client.Object, scheme *runtime.Scheme) error {
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
			problems = append(problems, fmt.Errorf("[%d]: %s %s has a deletion timestamp but no finalizers, so it would be "+
				"gone already",
				i, gvk.Kind, client.ObjectKeyFromObject(obj)))
		}
	}
	return errors.Join(problems...)
}
