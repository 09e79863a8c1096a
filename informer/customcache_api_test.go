// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// tinyAPI serves ConfigMaps. It can be unreachable, and can drop its history, so that reconnecting watches must list
// again.
type tinyAPI struct {
	namespace string

	mu      sync.Mutex
	version int
	uids    int
	objects map[client.ObjectKey]*corev1.ConfigMap
	history []tinyEvent
	// forgotten is the version up to which the history was dropped.
	forgotten int
	watches   map[*tinyWatch]bool
	down      bool
	// reads counts reads of objects, except reads of the reflector.
	reads int
}

type tinyEvent struct {
	version int
	apiwatch.Event
}

func newTinyAPI() *tinyAPI {
	return &tinyAPI{namespace: "test", objects: map[client.ObjectKey]*corev1.ConfigMap{}, watches: map[*tinyWatch]bool{}}
}

var errDown = errors.New("the API is out of reach")

// put creates or updates an object.
func (a *tinyAPI) put(name, value string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version++
	obj := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: name}, Data: map[string]string{"value": value},
	}
	obj.Labels = map[string]string{"value": value}
	obj.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "test"}}
	event := apiwatch.Added
	if before := a.objects[client.ObjectKeyFromObject(obj)]; before != nil {
		obj.UID, event = before.UID, apiwatch.Modified
	} else {
		a.uids++
		obj.UID = types.UID(fmt.Sprintf("uid-%s-%d", a.namespace, a.uids))
	}
	obj.ResourceVersion = strconv.Itoa(a.version)
	a.objects[client.ObjectKeyFromObject(obj)] = obj
	a.send(event, obj)
}

func (a *tinyAPI) remove(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := client.ObjectKey{Namespace: a.namespace, Name: name}
	obj := a.objects[key]
	if obj == nil {
		return
	}
	a.version++
	delete(a.objects, key)
	last := obj.DeepCopy()
	last.ResourceVersion = strconv.Itoa(a.version)
	a.send(apiwatch.Deleted, last)
}

func (a *tinyAPI) send(event apiwatch.EventType, obj *corev1.ConfigMap) {
	a.history = append(a.history, tinyEvent{a.version, apiwatch.Event{Type: event, Object: obj}})
	for w := range a.watches {
		w.events <- apiwatch.Event{Type: event, Object: obj.DeepCopy()}
	}
}

// disconnect closes all watches. All calls fail until connect. If forget is true, the history is dropped.
func (a *tinyAPI) disconnect() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.down = true
	for w := range a.watches {
		delete(a.watches, w)
		close(w.events)
	}
}

func (a *tinyAPI) connect(forget bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.down = false
	if forget {
		a.forgotten = a.version
	}
}

// state returns the version of each object by name.
func (a *tinyAPI) state() map[string]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	state := map[string]string{}
	for key, obj := range a.objects {
		state[key.Name] = string(obj.UID) + "@" + obj.ResourceVersion + "=" + obj.Data["value"]
	}
	return state
}

func (a *tinyAPI) source() toolscache.ListerWatcher {
	return &toolscache.ListWatch{
		ListWithContextFunc: func(_ context.Context, _ metav1.ListOptions) (runtime.Object, error) {
			list := &corev1.ConfigMapList{}
			return list, a.list(list)
		},
		WatchFuncWithContext: func(_ context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
			return a.watch(options)
		},
	}
}

func (a *tinyAPI) list(list *corev1.ConfigMapList) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.down {
		return errDown
	}
	list.ResourceVersion = strconv.Itoa(a.version)
	for _, obj := range a.objects {
		list.Items = append(list.Items, *obj.DeepCopy())
	}
	return nil
}

func (a *tinyAPI) watch(options metav1.ListOptions) (apiwatch.Interface, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	since, _ := strconv.Atoi(options.ResourceVersion)
	switch {
	case a.down:
		return nil, errDown
	case options.SendInitialEvents != nil:
		return nil, apierrs.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "", nil)
	case since < a.forgotten:
		return nil, apierrs.NewResourceExpired("too old")
	}
	w := &tinyWatch{api: a, events: make(chan apiwatch.Event, 10_000)}
	for _, event := range a.history {
		if event.version > since {
			w.events <- apiwatch.Event{Type: event.Type, Object: event.Object.DeepCopyObject()}
		}
	}
	a.watches[w] = true
	return w, nil
}

type tinyWatch struct {
	api    *tinyAPI
	events chan apiwatch.Event
}

func (w *tinyWatch) ResultChan() <-chan apiwatch.Event { return w.events }

func (w *tinyWatch) Stop() {
	w.api.mu.Lock()
	defer w.api.mu.Unlock()
	delete(w.api.watches, w)
}

// Get and List implement the reader that bypasses the cache.
func (a *tinyAPI) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reads++
	if a.down {
		return errDown
	}
	found := a.objects[key]
	if found == nil {
		return apierrs.NewNotFound(schema.GroupResource{Resource: "configmaps"}, key.Name)
	}
	found.DeepCopyInto(obj.(*corev1.ConfigMap))
	return nil
}

func (a *tinyAPI) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	a.mu.Lock()
	a.reads++
	a.mu.Unlock()
	return a.list(list.(*corev1.ConfigMapList))
}

func (a *tinyAPI) readCount() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.reads
}
