// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	clientgotesting "k8s.io/client-go/testing"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/testkit/fixture"
)

var request = reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "test"}}

// world is an API server with a cache that follows on command.
type world struct {
	t       testing.TB
	server  client.WithWatch
	cached  client.Client
	live    countingReader
	cluster *Cluster
	gate    Gate
	// timeouts is the number of requests that were deferred for the longest time.
	timeouts int
	// failure is the error that writes return without effect.
	failure error
	// position is the resource version that the cache has observed, or "" if the cache does not report it.
	position       string
	reportsVersion bool
	// omitted holds names of objects that the cache does not contain.
	omitted map[string]bool
	// unserved reports whether the kinds are no longer served: the cache has no informers.
	unserved bool
}

var errUnserved = &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "ConfigMap"}}

type journalKey struct{}

func newWorld(t testing.TB, given ...client.Object) *world {
	w := &world{t: t, reportsVersion: true, omitted: map[string]bool{}}
	w.server = newFake().WithGlobalResourceVersionCounter().WithObjects(given...).
		WithStatusSubresource(&fixture.Resource{}).Build()
	w.live.Reader = w.server
	w.cluster = NewCluster(
		&laggingClient{Client: w.server, world: w},
		&w.live,
		&laggingCache{world: w},
		func(ctx context.Context) *Journal {
			journal, _ := ctx.Value(journalKey{}).(*Journal)
			return journal
		},
	)
	w.catchUp()
	return w
}

var (
	scheme  = fixture.NewScheme()
	decoder = serializer.NewCodecFactory(scheme).UniversalDecoder()
)

// newFake returns a builder with a plain tracker. The default tracker, which supports field managers, takes long to
// create.
func newFake() *fake.ClientBuilder {
	return fake.NewClientBuilder().WithScheme(scheme).WithObjectTracker(clientgotesting.NewObjectTracker(scheme, decoder))
}

// catchUp copies the state of the server to the cache.
func (w *world) catchUp() {
	w.t.Helper()
	builder := newFake()
	for _, list := range []client.ObjectList{
		&corev1.ConfigMapList{}, &corev1.PodList{}, &fixture.ResourceList{},
	} {
		w.must(w.server.List(context.Background(), list))
		for _, obj := range items(w.t, list) {
			if !w.omitted[obj.GetName()] {
				builder.WithObjects(obj)
			}
		}
	}
	w.cached = builder.Build()
	// The fake server does not return the resource version of a deletion. The next version is after it.
	marker := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "marker-"}}
	w.must(w.server.Create(context.Background(), marker))
	w.position = marker.ResourceVersion
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// reconcile runs the request if the gate admits it. It returns how long the request was deferred, and whether it read
// live.
func (w *world) reconcile(do func(ctx context.Context, c client.Client)) (wait time.Duration, live bool) {
	journal := &Journal{}
	if wait := w.gate.Enter(w.t.Context(), request, journal, DefaultTimeout); wait > 0 {
		return wait, false
	}
	if journal.TimedOut() {
		w.timeouts++
	}
	defer w.gate.Leave(request, journal)
	if do != nil {
		do(context.WithValue(w.t.Context(), journalKey{}, journal), w.cluster.Client())
	}
	return 0, journal.Live()
}

func (w *world) kept() int {
	w.gate.mu.Lock()
	defer w.gate.mu.Unlock()
	return len(w.gate.journals)
}

// laggingClient writes to the server and reads from the cache.
type laggingClient struct {
	client.Client
	world *world
}

func (c *laggingClient) Get(
	ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
) error {
	if c.world.unserved {
		return errUnserved
	}
	return c.world.cached.Get(ctx, key, obj, opts...)
}

func (c *laggingClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.world.cached.List(ctx, list, opts...)
}

func (c *laggingClient) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	if c.world.failure != nil {
		return c.world.failure
	}
	return c.Client.Create(ctx, obj, opts...)
}

func (c *laggingClient) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	if c.world.failure != nil {
		return c.world.failure
	}
	return c.Client.Delete(ctx, obj, opts...)
}

// laggingCache implements the methods of a cache that the guard calls.
type laggingCache struct {
	informertest.FakeInformers
	world *world
}

func (c *laggingCache) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	if c.world.unserved {
		return nil, errUnserved
	}
	return storeInformer{store: &toolscache.FakeCustomStore{LastStoreSyncResourceVersionFunc: func() string {
		if !c.world.reportsVersion {
			return ""
		}
		return c.world.position
	}}}, nil
}

type storeInformer struct {
	cache.Informer
	store toolscache.Store
}

func (i storeInformer) GetStore() toolscache.Store { return i.store }

// countingReader counts the reads that bypass the cache.
type countingReader struct {
	client.Reader
	gets, lists int
}

func (r *countingReader) Get(
	ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
) error {
	r.gets++
	return r.Reader.Get(ctx, key, obj, opts...)
}

func (r *countingReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	r.lists++
	return r.Reader.List(ctx, list, opts...)
}

func items(t testing.TB, list client.ObjectList) []client.Object {
	t.Helper()
	objs := []client.Object{}
	switch list := list.(type) {
	case *corev1.ConfigMapList:
		for i := range list.Items {
			objs = append(objs, &list.Items[i])
		}
	case *corev1.PodList:
		for i := range list.Items {
			objs = append(objs, &list.Items[i])
		}
	case *fixture.ResourceList:
		for i := range list.Items {
			objs = append(objs, &list.Items[i])
		}
	default:
		t.Fatalf("cannot take the items of %T", list)
	}
	return objs
}

func configMap(name string, finalizers ...string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace:  "default",
		Name:       name,
		UID:        types.UID("uid-of-" + name),
		Labels:     map[string]string{"app": "test"},
		Finalizers: finalizers,
	}}
}

// forms are the ways to read a ConfigMap.
var forms = map[string]func() client.Object{
	"typed": func() client.Object { return &corev1.ConfigMap{} },
	"unstructured": func() client.Object {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		return u
	},
	"metadata": func() client.Object {
		m := &metav1.PartialObjectMetadata{}
		m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		return m
	},
}
