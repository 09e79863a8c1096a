// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"trueup.dev/converge/internal/apiserver"
	"trueup.dev/converge/internal/apply"
	"trueup.dev/converge/internal/kinds"
)

// ours makes in-memory servers, one for each sequence.
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
	server, _ := o.startCollected(ctx, namespace)
	return server
}

// startCollected returns a new server with a namespace, and a function that collects all garbage.
func (o *ours) startCollected(ctx context.Context, namespace string) (_ Server, collect func() error) {
	s := apiserver.New(apiserver.Options{Registry: o.registry, Applier: o.applier, Seed: o.seeds.Add(1)})
	server := Server{Client: s.Client(manager), Watches: o.watches}
	if err := server.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		panic(err)
	}
	server.Events = func(_ context.Context, kind *Kind, namespace string) (events []Event, err error) {
		for _, event := range s.Events(0) {
			if event.Kind != kind.GroupVersionKind || event.Key.Namespace != namespace && (!kind.ClusterScoped || !strings.HasPrefix(event.Key.Name+"-", namespace+"-")) {
				continue
			}
			object := event.Object.DeepCopyObject()
			object.GetObjectKind().SetGroupVersionKind(event.Kind)
			events = append(events, Event{Type: event.Type, Object: content(object)})
		}
		return events, nil
	}
	return server, func() error {
		for garbage := s.Garbage(); len(garbage) > 0; garbage = s.Garbage() {
			// A real collector attends to what is owned before it lets the owner go.
			next := max(0, slices.IndexFunc(garbage, func(c apiserver.Collection) bool { return c.Type != apiserver.FinishDeletion }))
			if err := s.Collect(garbage[next]); err != nil {
				return err
			}
		}
		return nil
	}
}
