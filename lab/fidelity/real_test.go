// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/sandbox"
)

func TestMain(m *testing.M) { apitest.Main(m) }

// manager is the default field manager of clients.
const manager = "fidelity"

func newScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, addGadgets} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// realServer is a kube-apiserver without controllers: only sequences change its objects.
type realServer struct {
	Server
	testing.TB
	env     *sandbox.Env
	watches map[schema.GroupVersionKind]*history

	mu         sync.Mutex
	namespaces int
}

func newRealServer(t testing.TB, with ...sandbox.Options) *realServer {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a server")
	}
	options := sandbox.TestOptions{Options: sandbox.Options{Controllers: []string{"none"}, DisablePods: true}}
	if len(with) > 0 {
		options.Options = with[0]
	}
	for _, definition := range newDefinitions(t) {
		options.CRDs = append(options.CRDs, definition)
	}
	env := sandbox.ForTest(t, options)
	config := env.RESTConfig()
	config.UserAgent = manager + "/1"
	config.WarningHandler = rest.NoWarnings{}
	c, err := client.NewWithWatch(config, client.Options{Scheme: newScheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	s := &realServer{
		TB: t, env: env, Server: Server{Client: c, Transport: transport, Host: config.Host},
		watches: map[schema.GroupVersionKind]*history{},
	}
	s.Events = s.events
	for _, kind := range catalog {
		if s.watches[kind.GroupVersionKind] == nil {
			s.watches[kind.GroupVersionKind] = s.watch(kind)
		}
	}
	return s
}

// newNamespace returns the name of an empty namespace.
func (s *realServer) newNamespace(ctx context.Context) (string, error) {
	s.mu.Lock()
	s.namespaces++
	name := fmt.Sprintf("%s-%d", s.env.Namespace, s.namespaces)
	s.mu.Unlock()
	return name, s.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

// run runs a sequence in a new namespace, and repeats it if it took so long that its times are meaningless.
func (s *realServer) run(ctx context.Context, sequence Sequence) (*Transcript, error) {
	for {
		namespace, err := s.newNamespace(ctx)
		if err != nil {
			return nil, err
		}
		start := time.Now()
		transcript, err := s.Run(ctx, namespace, sequence)
		if err != nil {
			return nil, err
		}
		if err := s.sweep(ctx, sequence, namespace); err != nil {
			return nil, err
		}
		if time.Since(start) < apart/2 {
			return transcript, nil
		}
	}
}

// runAgain runs a sequence again, in another namespace.
func (s *realServer) runAgain(ctx context.Context, _ string, sequence Sequence) (*Transcript, error) {
	return s.run(ctx, sequence)
}

// sweep deletes objects that would exhaust a server: ports, and objects that are listed together.
func (s *realServer) sweep(ctx context.Context, sequence Sequence, namespace string) error {
	r := run{transcript: &Transcript{Namespace: namespace}}
	for _, kind := range sequence.Kinds() {
		if kind != services && !kind.ClusterScoped {
			continue
		}
		list := newList(kind)
		if err := s.Client.List(ctx, list, r.scope(kind)...); err != nil {
			return err
		}
		for i := range list.Items {
			item := &list.Items[i]
			release := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
			if len(item.GetFinalizers()) > 0 {
				if err := client.IgnoreNotFound(s.Client.Patch(ctx, item, release)); err != nil {
					return err
				}
			}
			if err := client.IgnoreNotFound(s.Client.Delete(ctx, item, client.PropagationPolicy("Background"))); err != nil {
				return err
			}
		}
	}
	return nil
}

// history has the events of a watch of all objects of a kind.
type history struct {
	kind     *Kind
	scope    string                     // what the names of sequences start with
	sentinel *unstructured.Unstructured // written to learn how far the watch is

	mu      sync.Mutex
	version int64
	events  map[string][]Event // by sequence
	moved   chan struct{}      // closed by the next event
	err     error
}

func (s *realServer) watch(kind *Kind) *history {
	h := &history{kind: kind, scope: s.env.Namespace, events: map[string][]Event{}, moved: make(chan struct{})}
	ctx := s.Context()
	h.sentinel = &unstructured.Unstructured{Object: runtime.DeepCopyJSON(kind.Content)}
	h.sentinel.SetGroupVersionKind(kind.GroupVersionKind)
	h.sentinel.SetName(s.env.Namespace + "-sentinel")
	if !kind.ClusterScoped {
		h.sentinel.SetNamespace(s.env.Namespace)
	}
	if err := s.Client.Create(ctx, h.sentinel); err != nil {
		s.Fatalf("%s: %v", kind.Kind, err)
	}
	watcher, err := s.Client.Watch(ctx, newList(kind), &client.ListOptions{
		Raw: &metav1.ListOptions{ResourceVersion: h.sentinel.GetResourceVersion()},
	})
	if err != nil {
		s.Fatal(err)
	}
	ended := make(chan struct{})
	s.Cleanup(func() {
		watcher.Stop()
		<-ended
	})
	go func() {
		defer close(ended)
		for event := range watcher.ResultChan() {
			h.add(event)
		}
		h.fail(fmt.Errorf("the watch of %s ended", kind.Kind))
	}()
	return h
}

func (h *history) add(event watch.Event) {
	object, ok := event.Object.(*unstructured.Unstructured)
	if !ok {
		h.fail(fmt.Errorf("watch of %s: %s %v", h.kind.Kind, event.Type, event.Object))
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.version, _ = strconv.ParseInt(object.GetResourceVersion(), 10, 64)
	if event.Type != watch.Bookmark {
		scope := object.GetNamespace()
		if h.kind.ClusterScoped {
			// Names start with the name of the sequence, which has one dash fewer than the first name.
			name := strings.SplitN(object.GetName(), "-", strings.Count(h.scope, "-")+3)
			scope = strings.Join(name[:min(len(name), strings.Count(h.scope, "-")+2)], "-")
		}
		h.events[scope] = append(h.events[scope], Event{Type: event.Type, Object: object.Object})
	}
	close(h.moved)
	h.moved = make(chan struct{})
}

func (h *history) fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err == nil {
		h.err = err
		close(h.moved)
	}
}

// events waits until a watch has shown all previous writes: it makes a write and waits for its event.
func (s *realServer) events(ctx context.Context, kind *Kind, namespace string) ([]Event, error) {
	h := s.watches[kind.GroupVersionKind]
	sentinel := h.sentinel.DeepCopy()
	now := client.RawPatch(
		"application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"annotations":{"now":"%d"}}}`, time.Now().UnixNano()),
	)
	if err := s.Client.Patch(ctx, sentinel, now); err != nil {
		return nil, err
	}
	last, err := strconv.ParseInt(sentinel.GetResourceVersion(), 10, 64)
	if err != nil {
		return nil, err
	}
	for {
		h.mu.Lock()
		version, moved, failed := h.version, h.moved, h.err
		events := h.events[namespace]
		if version >= last {
			delete(h.events, namespace)
		}
		h.mu.Unlock()
		switch {
		case version >= last:
			return events, nil
		case failed != nil:
			return nil, failed
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
