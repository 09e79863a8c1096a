// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"net/http"
	"sync"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// link is the connection of watches. While it is down, watches receive no events; when it is up again, they must list.
type link struct {
	mu   sync.Mutex
	down bool
	cut  chan struct{}
}

func (k *link) disconnect() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.down = true
}

func (k *link) reconnect() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.down = false
	close(k.cut)
	k.cut = make(chan struct{})
}

func (k *link) isDown() (down bool, cut <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.down, k.cut
}

func (k *link) listerWatcher(
	api client.WithWatch, scheme *runtime.Scheme, example runtime.Object,
) toolscache.ListerWatcher {
	list := func() client.ObjectList {
		gvk, err := apiutil.GVKForObject(example, scheme)
		if err != nil {
			panic(err)
		}
		gvk.Kind += "List"
		list, err := scheme.New(gvk)
		if err != nil {
			panic(err)
		}
		return list.(client.ObjectList)
	}
	return &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
			found := list()
			return found, api.List(ctx, found)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			if options.SendInitialEvents != nil {
				// it supports only lists
				return nil, apierrs.NewInvalid(example.GetObjectKind().GroupVersionKind().GroupKind(), "", nil)
			}
			source, err := api.Watch(ctx, list())
			if err != nil {
				return nil, err
			}
			events := make(chan watch.Event)
			proxy := watch.NewProxyWatcher(events)
			_, cut := k.isDown()
			go k.forward(source, proxy, events, cut)
			return proxy, nil
		},
	}
}

// forward passes events on while the link is up.
func (k *link) forward(source watch.Interface, to *watch.ProxyWatcher, events chan<- watch.Event, cut <-chan struct{}) {
	defer close(events)
	defer source.Stop()
	for {
		event := watch.Event{}
		select {
		case <-to.StopChan():
			return
		case <-cut:
			expired := apierrs.NewResourceExpired("the link was down").Status()
			event = watch.Event{Type: watch.Error, Object: &expired}
		case got, ok := <-source.ResultChan():
			if !ok {
				return
			}
			if down, _ := k.isDown(); down {
				continue
			}
			event = got
		}
		select {
		case <-to.StopChan():
			return
		case events <- event:
		}
		if status, isStatus := event.Object.(*metav1.Status); isStatus && status.Code == http.StatusGone {
			return
		}
	}
}
