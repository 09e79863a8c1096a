// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/operator"
	"trueup.dev/reconcilers"
)

// lab is an API in memory with managers that run as in production, with real caches, queues and controllers. Use it in
// a synctest bubble, which controls the time.
type lab struct {
	testing.TB
	// Client is the client of users.
	client.Client
	api    client.WithWatch
	scheme *runtime.Scheme
	mapper meta.RESTMapper
	link   link
	// changed adapts the manager's options to the test.
	changed func(*ctrl.Options)

	mu sync.Mutex
	// patching, if set, is called before each patch of a controller.
	patching func()
	uids     int
	events   []string
}

// inLab runs a test in a bubble, with a lab.
func inLab(t *testing.T, test func(*lab)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { test(newLab(t)) })
}

func newLab(t testing.TB) *lab {
	// The API in memory maps all kinds of its scheme again for every write.
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{fixture.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	l := &lab{TB: t, scheme: scheme, link: link{cut: make(chan struct{})}}
	l.api = interceptor.NewClient(
		fake.NewClientBuilder().WithScheme(l.scheme).WithStatusSubresource(&fixture.Resource{}).Build(),
		interceptor.Funcs{Create: l.create, Update: l.update},
	)
	l.Client = l.api
	mapper := meta.NewDefaultRESTMapper(nil)
	for gvk := range l.scheme.AllKnownTypes() {
		mapper.Add(gvk, meta.RESTScopeNamespace)
	}
	l.mapper = mapper
	return l
}

// create sets the fields that a server sets.
func (l *lab) create(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
	l.mu.Lock()
	l.uids++
	obj.SetUID(types.UID(fmt.Sprintf("uid-%d", l.uids)))
	l.mu.Unlock()
	obj.SetCreationTimestamp(metav1.NewTime(time.Now().Truncate(time.Second)))
	if specOf(obj) != nil {
		obj.SetGeneration(1)
	}
	return c.Create(ctx, obj, opts...)
}

// update increments the generation if the spec changes.
func (l *lab) update(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
	before := obj.DeepCopyObject().(client.Object)
	if err := c.Get(ctx, client.ObjectKeyFromObject(obj), before); err != nil {
		return err
	}
	if !reflect.DeepEqual(specOf(before), specOf(obj)) {
		obj.SetGeneration(before.GetGeneration() + 1)
	}
	return c.Update(ctx, obj, opts...)
}

func specOf(obj client.Object) any {
	content := map[string]any{}
	if encoded, err := json.Marshal(obj); err != nil || json.Unmarshal(encoded, &content) != nil {
		return nil
	}
	return content["spec"]
}

// start starts a manager, which stops at the end of the test.
func (l *lab) start(controllers ...func(ctrl.Manager, reconcilers.Config) error) {
	l.Helper()
	options := ctrl.Options{
		Scheme:         l.scheme,
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return l.mapper, nil },
		NewClient: func(_ *rest.Config, o client.Options) (client.Client, error) {
			return cachedClient{Client: l.api, cache: o.Cache.Reader, lab: l}, nil
		},
		Cache:      cache.Options{NewInformer: l.newInformer},
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true)},
	}
	if l.changed != nil {
		l.changed(&options)
	}
	mgr, err := ctrl.NewManager(&rest.Config{Host: "http://nowhere.invalid", Transport: noNetwork{}}, options)
	l.must(err)
	config := reconcilers.NewConfig(mgr, nil, time.Hour)
	config.Recorder, config.APIReader = labRecorder{l}, l.api
	for _, add := range controllers {
		l.must(add(mgr, config))
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	l.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			l.Errorf("the manager ended with: %v", err)
		}
		// Goroutines of client-go end with their next tick.
		time.Sleep(time.Minute)
		synctest.Wait()
	})
	l.pass(5 * time.Second) // until the caches are synced
}

// controller returns a controller for start, with a few workers.
func controller[T client.Object](
	handlers ...reconcilers.SubReconciler[T],
) func(ctrl.Manager, reconcilers.Config) error {
	return controllerWith(4, handlers...)
}

// singly returns a controller for start, with one worker.
func singly[T client.Object](handlers ...reconcilers.SubReconciler[T]) func(ctrl.Manager, reconcilers.Config) error {
	return controllerWith(1, handlers...)
}

func controllerWith[T client.Object](
	workers int, handlers ...reconcilers.SubReconciler[T],
) func(ctrl.Manager, reconcilers.Config) error {
	return func(mgr ctrl.Manager, config reconcilers.Config) error {
		c := &operator.Controller[T]{Handlers: handlers, Config: config, MaxConcurrentReconciles: workers}
		return c.SetupWithManager(context.Background(), mgr)
	}
}

// changeIn reads, changes and writes an object.
func changeIn[T client.Object](l *lab, obj T, apply func(T)) {
	l.Helper()
	l.must(l.Get(context.Background(), client.ObjectKeyFromObject(obj), obj))
	apply(obj)
	l.must(l.Update(context.Background(), obj))
}

func (l *lab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// pass advances the time, and waits until everything that is due by then is done.
func (l *lab) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// reconnect ends an outage of the watches.
func (l *lab) reconnect() {
	synctest.Wait() // so that the events are lost
	l.link.reconnect()
}

// onPatch sets a function that runs before each patch of a controller.
func (l *lab) onPatch(happen func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.patching = happen
}

// eventsOf returns the number of recorded events with this reason.
func (l *lab) eventsOf(reason string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	count := 0
	for _, event := range l.events {
		if strings.HasPrefix(event, reason+": ") {
			count++
		}
	}
	return count
}

type labRecorder struct{ *lab }

func (r labRecorder) Event(_ runtime.Object, _, reason, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, reason+": "+message)
}

func (r labRecorder) Eventf(obj runtime.Object, eventtype, reason, format string, args ...any) {
	r.Event(obj, eventtype, reason, fmt.Sprintf(format, args...))
}

func (r labRecorder) AnnotatedEventf(
	obj runtime.Object, _ map[string]string, eventtype, reason, format string, args ...any,
) {
	r.Eventf(obj, eventtype, reason, format, args...)
}

// cachedClient reads from a cache.
type cachedClient struct {
	client.Client
	cache client.Reader
	lab   *lab
}

func (c cachedClient) Get(
	ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
) error {
	return c.cache.Get(ctx, key, obj, opts...)
}

func (c cachedClient) Patch(
	ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption,
) error {
	c.lab.mu.Lock()
	patching := c.lab.patching
	c.lab.mu.Unlock()
	if patching != nil {
		patching()
	}
	return c.Client.Patch(ctx, obj, patch, opts...)
}

func (c cachedClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.cache.List(ctx, list, opts...)
}

// newInformer returns an informer of the API in memory.
func (l *lab) newInformer(
	_ toolscache.ListerWatcher, example runtime.Object, resync time.Duration, indexers toolscache.Indexers,
) toolscache.SharedIndexInformer {
	return toolscache.NewSharedIndexInformer(l.link.listerWatcher(l.api, l.scheme, example), example, resync, indexers)
}

func newResource(name, value string) *fixture.Resource {
	return &fixture.Resource{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       fixture.ResourceSpec{Fields: map[string]string{"value": value}},
	}
}

func setValue(value string) func(*fixture.Resource) {
	return func(r *fixture.Resource) { r.Spec.Fields = map[string]string{"value": value} }
}

func newConfigMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string]string{"value": value},
	}
}

// lookIntoCache sets look to a function that returns the object a as a cache holds it.
func (l *lab) lookIntoCache(look *func() *fixture.Resource) func(ctrl.Manager, reconcilers.Config) error {
	return func(mgr ctrl.Manager, _ reconcilers.Config) error {
		*look = func() *fixture.Resource {
			cached := newResource("a", "")
			l.must(
				mgr.GetCache().Get(context.Background(), client.ObjectKeyFromObject(cached), cached, client.UnsafeDisableDeepCopy),
			)
			found := cached.DeepCopy()
			found.ManagedFields = nil // clients of the API in memory do not get them
			return found
		}
		return nil
	}
}

// noNetwork replaces connections that bypass the client. A look-up of the server would use state that the net package
// has made in the bubble of another test.
type noNetwork struct{}

func (noNetwork) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("the lab has no network")
}
