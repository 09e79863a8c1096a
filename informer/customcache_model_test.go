// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// audience is an event handler that checks and records the events that it receives.
type audience struct {
	testing.TB
	informer *CustomCache
	mu       sync.Mutex
	known    map[string]*corev1.ConfigMap
	// deleted holds the UIDs of objects whose deletion was received.
	deleted map[string]bool
	events  []string
}

func newAudience(t testing.TB, informer *CustomCache) *audience {
	return &audience{TB: t, informer: informer, known: map[string]*corev1.ConfigMap{}, deleted: map[string]bool{}}
}

func (a *audience) OnAdd(obj any, initial bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	cm := obj.(*corev1.ConfigMap)
	a.events = append(a.events, fmt.Sprintf("add %s %s initial=%t", cm.Name, cm.Data["value"], initial))
	a.take(cm)
}

func (a *audience) OnUpdate(old, obj any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before, cm := old.(*corev1.ConfigMap), obj.(*corev1.ConfigMap)
	a.events = append(a.events, fmt.Sprintf("update %s %s>%s", cm.Name, before.Data["value"], cm.Data["value"]))
	if before.Name != cm.Name || before.UID == "" || before.ResourceVersion == cm.ResourceVersion && before != cm {
		a.Errorf("update of %v from %v", cm, before)
	}
	if before.UID != cm.UID {
		a.deleted[string(before.UID)] = true
	}
	a.take(cm)
}

func (a *audience) OnDelete(obj any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if tombstone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	cm := obj.(*corev1.ConfigMap)
	a.events = append(a.events, fmt.Sprintf("delete %s %s", cm.Name, cm.Data["value"]))
	if a.deleted[string(cm.UID)] {
		a.Errorf("%s with UID %s was deleted twice", cm.Name, cm.UID)
	}
	a.deleted[string(cm.UID)] = true
	if known := a.known[cm.Name]; known != nil && known.UID == cm.UID {
		delete(a.known, cm.Name)
	}
}

func (a *audience) take(cm *corev1.ConfigMap) {
	if cm.Data == nil || cm.Kind != "ConfigMap" || cm.ManagedFields != nil {
		a.Errorf("received %s as %v", cm.Name, cm)
	}
	if readable, ok := a.informer.entries.get(client.ObjectKeyFromObject(cm)); ok {
		if version, _ := strconv.Atoi(readable.version); version < versionIn(cm) {
			a.Errorf("received %s in version %s before version %s was replaced", cm.Name, cm.ResourceVersion, readable.version)
		}
	}
	// A handler that is added later may receive a newer version first.
	if known := a.known[cm.Name]; known == nil || versionIn(known) < versionIn(cm) {
		a.known[cm.Name] = cm
	}
}

func versionIn(cm *corev1.ConfigMap) int {
	version, _ := strconv.Atoi(cm.ResourceVersion)
	return version
}

func (a *audience) state() map[string]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	state := map[string]string{}
	for name, cm := range a.known {
		state[name] = string(cm.UID) + "@" + cm.ResourceVersion + "=" + cm.Data["value"]
	}
	return state
}

// version returns the last received version of an object, 0 if none.
func (a *audience) version(name string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known[name] == nil {
		return 0
	}
	return versionIn(a.known[name])
}

func (a *audience) received() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.events)
}

// newTestInformer returns an informer of ConfigMaps, with an audience.
func newTestInformer(t testing.TB, api *tinyAPI, store Store, changes ...func(*selection)) *CustomCache {
	t.Helper()
	s := selection{object: &corev1.ConfigMap{}}
	for _, change := range changes {
		change(&s)
	}
	informer, err := newCustomCache(s, scheme.Scheme, api, store)
	if err != nil {
		t.Fatal(err)
	}
	informer.addFeed("", api.source()).onError = func(context.Context, *toolscache.Reflector, error) {}
	return informer
}

func listen(t testing.TB, informer *CustomCache) *audience {
	t.Helper()
	events, err := informer.GetInformer(t.Context(), &corev1.ConfigMap{})
	if err != nil {
		t.Fatal(err)
	}
	a := newAudience(t, informer)
	if _, err := events.AddEventHandler(a); err != nil {
		t.Fatal(err)
	}
	return a
}

// launch starts an informer, and stops it at the end of the test.
func launch(t testing.TB, informer Informer) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- informer.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the informer ended with %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// TestCustomCache_AgainstModel injects store faults and disconnections while objects are created, updated and
// deleted. Then it compares received events and reads with the state of the API.
func TestCustomCache_AgainstModel(t *testing.T) {
	klog.SetLogger(logr.Discard())
	seeds := uint64(1000)
	if testing.Short() {
		seeds = 400
	}
	if given := os.Getenv("TRUEUP_CACHE_SEEDS"); given != "" {
		parsed, err := strconv.ParseUint(given, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seeds = parsed
	}
	faults := 0
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) { faults += againstModel(t, seed) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if faults < 100 {
		t.Errorf("only %d faults of the store", faults)
	}
}

func againstModel(t *testing.T, seed uint64) int {
	chance := rand.New(rand.NewPCG(seed, 6))
	api := newTinyAPI()
	store := newFaultyStore(rand.New(rand.NewPCG(seed, 7)), []float64{0, 0.1, 0.4, 0.9}[chance.IntN(4)])
	for i := range 15 { // more than are read one by one
		api.put(fmt.Sprintf("n%d", i), "before")
	}
	informer := newTestInformer(t, api, store)
	early := listen(t, informer)
	launch(t, informer)
	audiences := []*audience{early}
	for step := range 60 {
		name := fmt.Sprintf("n%d", chance.IntN(20))
		switch chance.IntN(12) {
		case 0, 1, 2, 3:
			api.put(name, strconv.Itoa(step))
		case 4, 5:
			api.remove(name)
		case 6:
			api.remove(name)
			api.put(name, "again")
		case 7:
			api.disconnect()
		case 8:
			api.connect(chance.IntN(2) == 0)
		case 9:
			if informer.entriesReady() && len(audiences) < 4 {
				audiences = append(audiences, listen(t, informer))
			}
		case 10:
			readsAreFresh(t, informer, early, name)
		case 11:
			time.Sleep(time.Duration(chance.IntN(5000)) * time.Millisecond)
			synctest.Wait()
		}
	}
	api.connect(chance.IntN(2) == 0)
	store.setRate([]float64{0, 1}[chance.IntN(2)]) // it may never be good again
	time.Sleep(10 * time.Minute)
	synctest.Wait()

	want := api.state()
	for i, a := range audiences {
		if diff := cmp.Diff(want, a.state()); diff != "" {
			t.Errorf("audience %d (-want +got):\n%s\n%v", i, diff, a.received())
		}
	}
	if diff := cmp.Diff(want, listed(t, informer)); diff != "" {
		t.Errorf("lists differ (-want +got):\n%s", diff)
	}
	for name := range want {
		if diff := cmp.Diff(want[name], got(t, informer, name)); diff != "" {
			t.Errorf("read (-want +got):\n%s", diff)
		}
	}
	return store.faults
}

// readsAreFresh checks that a read is not older than the last received event.
func readsAreFresh(t *testing.T, informer *CustomCache, a *audience, name string) {
	received := a.version(name)
	cm := &corev1.ConfigMap{}
	if !informer.entriesReady() {
		return
	}
	if err := informer.Get(t.Context(), client.ObjectKey{Namespace: "test", Name: name}, cm); err != nil {
		return
	}
	if versionIn(cm) < received {
		t.Errorf("read %s in version %s, after an event of version %d", name, cm.ResourceVersion, received)
	}
}

func (c *CustomCache) entriesReady() bool { return isClosed(c.synced) }

func listed(t testing.TB, informer Informer, opts ...client.ListOption) map[string]string {
	t.Helper()
	list := &corev1.ConfigMapList{}
	if err := informer.List(t.Context(), list, opts...); err != nil {
		t.Fatal(err)
	}
	state := map[string]string{}
	for _, cm := range list.Items {
		state[cm.Name] = string(cm.UID) + "@" + cm.ResourceVersion + "=" + cm.Data["value"]
	}
	return state
}

// got returns the value of an object, "" if it is not found.
func got(t testing.TB, informer *CustomCache, name string) string {
	t.Helper()
	cm := &corev1.ConfigMap{}
	err := informer.Get(t.Context(), client.ObjectKey{Namespace: "test", Name: name}, cm)
	if apierrs.IsNotFound(err) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(cm.UID) + "@" + cm.ResourceVersion + "=" + cm.Data["value"]
}
