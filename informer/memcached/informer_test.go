// SPDX-License-Identifier: Apache-2.0

package memcached_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/bradfitz/gomemcache/memcache"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"trueup.dev/informer"
	"trueup.dev/informer/memcached"
	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/operator"
	"trueup.dev/resource"
	"trueup.dev/sandbox"
)

func TestMain(m *testing.M) { apitest.Main(m) }

var configMaps = resource.Kind{Schema: resource.NewSimpleSchema("", "v1", &corev1.ConfigMap{}, &corev1.ConfigMapList{})}

// world is a namespace of a real API, a real memcached, and a controller that uses both.
type world struct {
	*apitest.Env
	memcached *server
	informer  informer.Informer

	mu sync.Mutex
	// handled is the last value of each object that handlers received, without deleted objects.
	handled map[string]string
	added   int
}

func newWorld(t *testing.T, options ...string) *world {
	t.Helper()
	return &world{
		memcached: newServer(t, options...), Env: apitest.New(t, nil, sandbox.TestOptions{}), handled: map[string]string{},
	}
}

// start starts a controller that keeps ConfigMaps in memcached.
func (w *world) start(change ...func(*memcached.Config)) (stop func()) {
	w.Helper()
	configured := func(config *memcached.Config) {
		for _, change := range change {
			change(config)
		}
	}
	mgr, err := ctrl.NewManager(w.RESTConfig(), ctrl.Options{
		Scheme: scheme.Scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{
			SkipNameValidation: new(true),
		},
	})
	w.Must(err)
	w.informer, err = informer.NewCustomCache(configMaps, mgr, w.memcached.store(configured),
		informer.Options{Namespaces: []string{w.Namespace}, LabelFilters: []string{"test"}})
	w.Must(err)
	c := operator.NewInformerController(operator.InformerControllerConfig{
		Manager: mgr, PreviousState: operator.PreviousNone,
	})
	w.Must(errors.Join(c.AddInformer(w.informer, "configmaps"), c.AddWatcher(w, "configmaps")))
	return w.Go("the controller", c.Run)
}

func (w *world) Add(_ context.Context, object resource.Object) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.added++
	w.handled[object.GetName()] = object.(*corev1.ConfigMap).Data["value"]
	return nil
}

func (w *world) Update(_ context.Context, _, object resource.Object) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.handled[object.GetName()] = object.(*corev1.ConfigMap).Data["value"]
	return nil
}

func (w *world) Delete(_ context.Context, object resource.Object) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.handled, object.GetName())
	return nil
}

func (w *world) configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name, Labels: map[string]string{"test": "it"}},
		Data:       map[string]string{"value": value},
	}
}

// key returns the key of an object in memcached.
func (w *world) key(name string) string { return "test:v1/ConfigMap/" + w.Namespace + "/" + name }

// eventuallyHandled waits until handlers have received exactly these objects, and then compares reads with them.
func (w *world) eventuallyHandled(want map[string]string) {
	w.Helper()
	w.Eventually(func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		for name, value := range want {
			if got, ok := w.handled[name]; !ok || got != value {
				return fmt.Errorf("%s was handled with %.20q (%t), want %.20q", name, got, ok, value)
			}
		}
		if len(w.handled) != len(want) {
			return fmt.Errorf("%d objects, want %d", len(w.handled), len(want))
		}
		return nil
	})
	list := &corev1.ConfigMapList{}
	w.Must(w.informer.List(w.Context(), list))
	if len(list.Items) != len(want) {
		w.Errorf("%d objects in the list, want %d", len(list.Items), len(want))
	}
	for _, cm := range list.Items {
		read := &corev1.ConfigMap{}
		w.Must(w.informer.Get(w.Context(), client.ObjectKeyFromObject(&cm), read))
		if cm.Data["value"] != want[cm.Name] || read.Data["value"] != want[cm.Name] {
			w.Errorf(
				"%s is %.20q in the list and read as %.20q, want %.20q", cm.Name, cm.Data["value"], read.Data["value"],
				want[cm.Name],
			)
		}
	}
}

func TestInformer_MemcachedGoesAndComesBack(t *testing.T) {
	w := newWorld(t)
	want := map[string]string{}
	for i := range 30 {
		name := fmt.Sprint("n", i)
		want[name] = "before"
		w.Must(w.Create(w.Context(), w.configMap(name, "before")))
	}
	stop := w.start()
	w.eventuallyHandled(want)

	w.memcached.stop()
	for i := range 10 {
		want[fmt.Sprint("n", i)] = "while it was down"
		w.Must(w.Client.Update(w.Context(), w.configMap(fmt.Sprint("n", i), "while it was down")))
	}
	for i := 10; i < 15; i++ {
		delete(want, fmt.Sprint("n", i))
		w.Must(w.Client.Delete(w.Context(), w.configMap(fmt.Sprint("n", i), "")))
	}
	want["new"] = "1"
	w.Must(w.Create(w.Context(), w.configMap("new", "1")))
	w.eventuallyHandled(want)

	w.memcached.start() // with no entries
	delete(want, "n20")
	w.Must(w.Client.Delete(w.Context(), w.configMap("n20", "")))
	want["new"] = "2"
	w.Must(w.Client.Update(w.Context(), w.configMap("new", "2")))
	w.eventuallyHandled(want)
	stop()

	// A new process finds the entries of this one, and the changes in between.
	delete(want, "n21")
	w.Must(w.Client.Delete(w.Context(), w.configMap("n21", "")))
	want["n22"] = "between"
	w.Must(w.Client.Update(w.Context(), w.configMap("n22", "between")))
	w.mu.Lock()
	w.handled, w.added = map[string]string{}, 0
	w.mu.Unlock()
	w.start()
	w.eventuallyHandled(want)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.added != len(want) {
		t.Errorf("%d objects were added to the new process, want all %d", w.added, len(want))
	}
}

// An unreachable store is a miss: reads get objects from the API server.
func TestInformer_MemcachedThatCannotBeResolved(t *testing.T) {
	w := newWorld(t)
	w.Must(w.Create(w.Context(), w.configMap("test", "before")))
	failures := func() float64 {
		return apitest.Counted(t, "trueup_informer_store_errors_total", map[string]string{"kind": "ConfigMap"})
	}
	before := failures()
	w.start(func(c *memcached.Config) { c.Addrs = []string{"cache.example.invalid:11211"} })
	w.eventuallyHandled(map[string]string{"test": "before"})
	w.Must(w.Client.Update(w.Context(), w.configMap("test", "after")))
	w.eventuallyHandled(map[string]string{"test": "after"})
	if failures() == before {
		t.Error("failures of the store are not counted")
	}
}

func TestInformer_MemcachedIsTooSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("stores 100 objects: with -short, TestInformer_MemcachedGoesAndComesBack loses entries")
	}
	w := newWorld(t, "-m", "1", "-I", "512k")
	stranger := memcache.New(w.memcached.socket)
	defer stranger.Close()
	want := map[string]string{}
	for i := range 100 {
		// These are 100 objects of 60 kB each. Some are larger than memcached accepts.
		size := 60_000
		if i%20 == 0 {
			size = 900_000
		}
		name, value := fmt.Sprint("n", i), text(uint64(i), size)
		want[name] = value
		w.Must(w.Create(w.Context(), w.configMap(name, value)))
	}
	w.start()
	w.eventuallyHandled(want)
	kept := 0
	for name := range want {
		if _, err := stranger.Get(w.key(name)); err == nil {
			kept++
		}
	}
	if kept == 0 || kept == len(want) {
		t.Errorf("memcached kept %d of %d objects, want only some", kept, len(want))
	}
	w.Must(w.Client.Delete(w.Context(), w.configMap("n1", "")))
	delete(want, "n1")
	w.eventuallyHandled(want)
}

func text(seed uint64, size int) string {
	chance, value := rand.New(rand.NewPCG(seed, 1)), strings.Builder{}
	for range size {
		value.WriteByte(byte(' ' + 1 + chance.IntN(90)))
	}
	return value.String()
}

func TestInformer_ForeignEntries(t *testing.T) {
	w := newWorld(t)
	w.Must(w.Create(w.Context(), w.configMap("test", "right")))
	w.start()
	want := map[string]string{"test": "right"}
	w.eventuallyHandled(want)
	stranger := memcache.New(w.memcached.socket)
	defer stranger.Close()
	key := w.key("test")
	item, err := stranger.Get(key)
	w.Must(err)
	for _, value := range []string{strings.Replace(string(item.Value), "right", "wrong", 1), "{}", "", "nonsense"} {
		w.Must(stranger.Set(&memcache.Item{Key: key, Value: []byte(value)}))
		w.eventuallyHandled(want)
	}
	repaired, err := stranger.Get(key)
	w.Must(err)
	if string(repaired.Value) != string(item.Value) {
		t.Errorf("the entry is %s, want what it was", repaired.Value)
	}
}
