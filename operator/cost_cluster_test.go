// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// costCluster is a cache with a controller of a plain watcher, without any other cost.
type costCluster struct {
	scheme  *runtime.Scheme
	objects map[types.NamespacedName]*fixture.Resource
	// stored holds objects that the API server has and the cache does not.
	stored  map[types.NamespacedName]*fixture.Resource
	version int

	controller *Controller[*fixture.Resource]
	edge       *WithEdge[*fixture.Resource]
	recorder   predicate.Predicate
	// calls counts the calls of the watcher, and last is the version in the last call.
	calls int
	last  string
	// during runs during a call.
	during func()
}

func newCostCluster(tb testing.TB) *costCluster {
	tb.Helper()
	c := &costCluster{scheme: fixture.NewScheme(), objects: map[types.NamespacedName]*fixture.Resource{}}
	c.edge = WatcherReconciler[*fixture.Resource](costWatcher{c})
	manager := costManager{cluster: c}
	c.controller = &Controller[*fixture.Resource]{
		Handlers: []reconcilers.SubReconciler[*fixture.Resource]{c.edge}, Config: reconcilers.NewConfig(manager, nil, 0),
	}
	if err := c.controller.SetupWithManager(tb.Context(), manager); err != nil {
		tb.Fatal(err)
	}
	c.recorder = c.edge.ledgerPredicate(&fixture.Resource{})
	return c
}

type costWatcher struct{ cluster *costCluster }

func (w costWatcher) Add(_ context.Context, obj *fixture.Resource) error {
	w.cluster.called(obj)
	return nil
}

func (w costWatcher) Update(_ context.Context, _, obj *fixture.Resource) error {
	w.cluster.called(obj)
	return nil
}

func (w costWatcher) Delete(_ context.Context, obj *fixture.Resource) error {
	w.cluster.called(obj)
	return nil
}

func (c *costCluster) called(obj *fixture.Resource) {
	c.calls++
	c.last = obj.ResourceVersion
	if c.during != nil {
		c.during()
	}
}

// newObject returns an object for the cache. Objects in a cache have no kind.
func (c *costCluster) newObject(n int) *fixture.Resource {
	c.version++
	name := "object-" + strconv.Itoa(n)
	return &fixture.Resource{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID("uid-" + strconv.Itoa(c.version)),
			ResourceVersion: strconv.Itoa(c.version), Generation: 1,
			Labels: map[string]string{"app": "test"},
		},
		Spec: fixture.ResourceSpec{Fields: map[string]string{"key": "value"}},
	}
}

// create adds an object to the cache; update replaces it.
func (c *costCluster) create(obj *fixture.Resource) {
	c.objects[client.ObjectKeyFromObject(obj)] = obj
	c.recorder.Create(event.CreateEvent{Object: obj})
}

func (c *costCluster) update(obj *fixture.Resource) {
	key := client.ObjectKeyFromObject(obj)
	before := c.objects[key]
	c.objects[key] = obj
	c.recorder.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: obj})
}

func (c *costCluster) delete(obj *fixture.Resource) {
	delete(c.objects, client.ObjectKeyFromObject(obj))
	c.recorder.Delete(event.DeleteEvent{Object: obj})
}

func (c *costCluster) reconcile(ctx context.Context, tb testing.TB, obj *fixture.Resource) {
	if _, err := c.controller.Reconcile(ctx, reconcilers.Request{
		NamespacedName: client.ObjectKeyFromObject(obj),
	}); err != nil {
		tb.Fatal(err)
	}
}

// wantCalls fails unless the watcher was called this often since the last check.
func (c *costCluster) wantCalls(tb testing.TB, want int) {
	tb.Helper()
	if c.calls != want {
		tb.Errorf("the watcher was called %d times, not %d times", c.calls, want)
	}
	c.calls = 0
}

// costManager is a manager that uses the cache of the cluster.
type costManager struct {
	scheduleManager
	cluster *costCluster
}

func (m costManager) GetClient() client.Client    { return costClient{cluster: m.cluster} }
func (m costManager) GetAPIReader() client.Reader { return costClient{cluster: m.cluster, live: true} }
func (m costManager) GetScheme() *runtime.Scheme  { return m.cluster.scheme }

type costClient struct {
	client.Client
	cluster *costCluster
	// live reports whether reads bypass the cache.
	live bool
}

func (c costClient) Scheme() *runtime.Scheme { return c.cluster.scheme }

func (c costClient) GroupVersionKindFor(runtime.Object) (schema.GroupVersionKind, error) {
	return fixture.GroupVersion.WithKind("Resource"), nil
}

func (c costClient) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	found := c.cluster.objects[key]
	if found == nil && c.live {
		found = c.cluster.stored[key]
	}
	if found == nil {
		return apierrs.NewNotFound(schema.GroupResource{Group: fixture.GroupVersion.Group, Resource: "resources"}, key.Name)
	}
	to, ok := obj.(*fixture.Resource)
	if !ok {
		return fmt.Errorf("cannot read %T", obj)
	}
	*to = *found
	return nil
}
