// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"slices"
	"sync"

	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/testing/internal/fakeapi"
)

// api stores the objects of a config: in memory, or in a cluster.
type api struct {
	// client executes the calls of the recording client.
	client client.Client
	// reader is the APIReader of the config.
	reader client.Reader
	// discovery is that of the config. Nil for one that serves the GivenAPIResources.
	discovery discovery.DiscoveryInterface
	// addGiven adds objects as if they had been given from the start.
	addGiven func(obj client.Object) error
	// normalize returns the objects to compare: without the fields that only a server adds. Nil in memory.
	normalize func(expected, observed client.Object) (client.Object, client.Object)
	// changedNothing reports whether a server found nothing to change in an update. Nil in memory.
	changedNothing func(update client.Object) bool
	// notes returns what helps to understand a failed case, a line each. Nil in memory.
	notes func() []string
	// close removes the objects of the case. Nil in memory.
	close func() error
}

// newFakeAPI creates the given objects of a config in memory. Without Realistic, Client and APIReader have an API each.
func newFakeAPI(c *ExpectConfig) (*api, error) {
	options := fakeapi.Options{
		Scheme:             c.Scheme,
		Given:              c.given.objects,
		StatusSubresources: c.given.statusSubResources,
		Build:              c.WithClientBuilder,
		Mapper:             fakeapi.NewMapper(c.GivenAPIResources),
		Realistic:          c.Realistic,
	}
	var unseen []client.Object
	if c.Realistic {
		unseen = c.except(c.given.apiObjects, c.given.objects)
		options.Given = slices.Concat(options.Given, unseen)
	}
	fake, store, err := fakeapi.New(options)
	if err != nil {
		return nil, err
	}
	api := &api{client: fake, reader: fake, addGiven: func(obj client.Object) error {
		obj, err := givenObject(obj, c.Scheme)
		if err != nil {
			return err
		}
		return store.Add(obj)
	}}
	if c.Realistic {
		if api.client, err = fakeapi.Hide(c.Scheme, fake, unseen); err != nil {
			return nil, err
		}
		return api, nil
	}
	// created when needed, because few reconcilers use APIReader
	options.Given = c.given.apiObjects
	api.reader = lazyReader{open: sync.OnceValues(func() (client.Reader, error) {
		fake, _, err := fakeapi.New(options)
		return fake, err
	})}
	return api, nil
}

// except returns the objects that are not among others.
func (c *ExpectConfig) except(objs, others []client.Object) []client.Object {
	known := map[identity]bool{}
	for _, other := range others {
		known[c.identity(other)] = true
	}
	return slices.DeleteFunc(slices.Clone(objs), func(obj client.Object) bool { return known[c.identity(obj)] })
}

// lazyReader opens a reader when it is first used.
type lazyReader struct {
	open func() (client.Reader, error)
}

func (r lazyReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	reader, err := r.open()
	if err != nil {
		return err
	}
	return reader.Get(ctx, key, obj, opts...)
}

func (r lazyReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	reader, err := r.open()
	if err != nil {
		return err
	}
	return reader.List(ctx, list, opts...)
}
