// SPDX-License-Identifier: Apache-2.0

package simple

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"trueup.dev/reconcilers"
	"trueup.dev/resource"
)

var _ resource.LiveReaderGenerator = (*Clients)(nil)

// Clients are the clients of an [App], for handlers that have to be there before it is:
//
//	clients := &simple.Clients{}
//	store, err := resource.NewTypedStore[*MyKind](myKind, clients)
//	...
//	simple.NewApp(simple.AppConfig{
//		Clients:      clients,
//		ManagedKinds: []simple.AppManagedKind{{Kind: myKind, Reconciler: NewMyKindReconciler(store)}},
//		...
//	})
//
// They read from the informer of a kind if the app has one for all objects, and otherwise from the cache of the App's
// manager, which watches the kind once it is read: an informer that selects objects, by labels for example, does not
// have the others. The App recognizes its own writes by them. Until there is the App every call is an error. The zero
// value is ready to use, for one App.
type Clients struct {
	app atomic.Pointer[App]

	// mu guards what was asked for before there is an app.
	mu     sync.Mutex
	scheme *runtime.Scheme
	kinds  []resource.Kind
}

// ClientFor returns the client for objects of the kind.
func (c *Clients) ClientFor(kind resource.Kind) (resource.Client, error) {
	if err := kind.Validate(); err != nil {
		return nil, err
	}
	if app := c.app.Load(); app != nil {
		return app.configFor(kind).Client, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.scheme == nil {
		c.scheme = runtime.NewScheme()
		if err := clientgoscheme.AddToScheme(c.scheme); err != nil {
			return nil, err
		}
	}
	if err := kind.AddToScheme(c.scheme); err != nil {
		return nil, err
	}
	c.kinds = append(c.kinds, kind)
	return &laterClient{clients: c, kind: kind}, nil
}

// LiveReaderFor returns what reads objects of the kind from the API server.
func (c *Clients) LiveReaderFor(kind resource.Kind) (client.Reader, error) {
	if err := kind.Validate(); err != nil {
		return nil, err
	}
	if app := c.app.Load(); app != nil {
		return app.configFor(kind).APIReader, nil
	}
	return &laterReader{clients: c, kind: kind}, nil
}

var (
	errNoApp   = errors.New("the app of these clients has not been made yet")
	errSameApp = errors.New("these clients have an app already")
)

// configOf returns what objects of a kind are reached by, once there is an app.
func (c *Clients) configOf(kind resource.Kind) (reconcilers.Config, error) {
	if app := c.app.Load(); app != nil {
		return app.configFor(kind), nil
	}
	return reconcilers.Config{}, errNoApp
}

// kindOf tells what kind an object is of, before there is an app.
func (c *Clients) kindOf(obj runtime.Object) (schema.GroupVersionKind, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return apiutil.GVKForObject(obj, c.scheme)
}

// use makes them the clients of an app.
func (c *Clients) use(app *App) error {
	if !c.app.CompareAndSwap(nil, app) {
		return errSameApp
	}
	return nil
}

// known are the kinds that clients were asked for.
func (c *Clients) known() []resource.Kind {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.kinds)
}
