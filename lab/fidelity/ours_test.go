// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/memapi"
	"trueup.dev/internal/memapi/apply"
	"trueup.dev/internal/memapi/httpapi"
	"trueup.dev/internal/memapi/kinds"
)

// ours creates in-memory servers, one for each sequence.
type ours struct {
	registry *kinds.Registry
	applier  *apply.Applier
	seeds    atomic.Uint64
	watches  []Watch
}

func newOurs(t testing.TB) *ours {
	t.Helper()
	registry, err := kinds.NewRegistry(newScheme(t), newDefinitions(t)...)
	if err != nil {
		t.Fatal(err)
	}
	return &ours{registry: registry, applier: apply.New(registry)}
}

func (o *ours) run(ctx context.Context, namespace string, sequence Sequence) (*Transcript, error) {
	return o.start(ctx, namespace).Run(ctx, namespace, sequence)
}

// start returns a new server with a namespace.
func (o *ours) start(ctx context.Context, namespace string) Server {
	server, _ := o.startServer(ctx, namespace)
	return server
}

// startServer is start that also returns the server.
func (o *ours) startServer(ctx context.Context, namespace string) (Server, *memapi.Server) {
	s := memapi.New(memapi.Options{Registry: o.registry, Applier: o.applier, Seed: o.seeds.Add(1)})
	c := s.Client(manager)
	server := Server{
		Client: c, Watches: o.watches, Host: "http://memory",
		Transport: &httpapi.Transport{Client: c, Registry: o.registry, Server: s},
	}
	if err := server.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		panic(err)
	}
	server.Events = func(ctx context.Context, kind *Kind, namespace string) (events []Event, err error) {
		watcher, err := server.Client.Watch(ctx, newList(kind), &client.ListOptions{
			Raw: &metav1.ListOptions{ResourceVersion: "1"},
		})
		if err != nil {
			return nil, err
		}
		watcher.Stop() // past events can still be read
		for event := range watcher.ResultChan() {
			object := event.Object.(*unstructured.Unstructured)
			if object.GetNamespace() == namespace || kind.ClusterScoped &&
				strings.HasPrefix(object.GetName()+"-", namespace+"-") {
				events = append(events, Event{Type: event.Type, Object: object.Object})
			}
		}
		return events, nil
	}
	return server, s
}
