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

// Clients are the clients of an [App], for handlers that must be made before the App:
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
// They read from the informer of a kind if that informer has all objects. Otherwise they read from the cache of the
// App's manager, which starts to watch the kind at the first read: an informer that selects objects, for example by
// labels, does not have the others. The App recognizes writes by these clients as its own. Every call returns an error
// until the App is made. The zero value is ready to use, for one App.
type Clients struct {
	app atomic.Pointer[App]

	// mu guards the fields that are set before the app exists.
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
	return (&later{c, kind}).client(), nil
}

// LiveReaderFor returns a client that reads objects of the kind from the API server.
func (c *Clients) LiveReaderFor(kind resource.Kind) (client.Reader, error) {
	if err := kind.Validate(); err != nil {
		return nil, err
	}
	if app := c.app.Load(); app != nil {
		return app.configFor(kind).APIReader, nil
	}
	return (&later{c, kind}).reader(), nil
}

var (
	errNoApp   = errors.New("the app of these clients has not been made yet")
	errSameApp = errors.New("these clients already belong to an app")
)

// configOf returns the config to access objects of a kind, or an error before the app exists.
func (c *Clients) configOf(kind resource.Kind) (reconcilers.Config, error) {
	if app := c.app.Load(); app != nil {
		return app.configFor(kind), nil
	}
	return reconcilers.Config{}, errNoApp
}

// kindOf returns the kind of an object, even before the app exists.
func (c *Clients) kindOf(obj runtime.Object) (schema.GroupVersionKind, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return apiutil.GVKForObject(obj, c.scheme)
}

// use binds the clients to an app.
func (c *Clients) use(app *App) error {
	if !c.app.CompareAndSwap(nil, app) {
		return errSameApp
	}
	return nil
}

// known returns the kinds for which clients were requested.
func (c *Clients) known() []resource.Kind {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.kinds)
}
