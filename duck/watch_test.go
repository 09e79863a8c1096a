// SPDX-License-Identifier: Apache-2.0

package duck_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"trueup.dev/duck"
)

func nextEvent(t *testing.T, w watch.Interface) watch.Event {
	t.Helper()
	select {
	case event, ok := <-w.ResultChan():
		if !ok {
			t.Fatal("the watch ended")
		}
		return event
	case <-time.After(30 * time.Second):
		t.Fatal("no event")
	}
	panic("unreachable")
}

func TestWatch(t *testing.T) {
	plain := cluster()
	c := duck.NewDuckAwareClientWrapper(plain).(client.WithWatch)
	w, err := c.Watch(t.Context(), &ScalableList{TypeMeta: deploymentList}, client.InNamespace("ns"))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()

	if err := plain.Create(t.Context(), whole("a")); err != nil {
		t.Fatal(err)
	}
	event := nextEvent(t, w)
	if diff := cmp.Diff(watch.Added, event.Type); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
	got, ok := event.Object.(*Scalable)
	if !ok {
		t.Fatalf("got an event with %T, want a duck", event.Object)
	}
	if diff := cmp.Diff(new(int32(1)), got.Spec.Replicas); diff != "" {
		t.Errorf("replicas (-want +got):\n%s", diff)
	}
}

func TestWatchErrorEvents(t *testing.T) {
	source := watch.NewFake()
	plain := interceptor.NewClient(cluster(), interceptor.Funcs{
		Watch: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
			return source, nil
		},
	})
	w, err := duck.NewDuckAwareClientWrapper(plain).(client.WithWatch).Watch(
		t.Context(), &ScalableList{TypeMeta: deploymentList},
	)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()

	gone := &metav1.Status{Reason: metav1.StatusReasonExpired}
	go source.Error(gone)
	if diff := cmp.Diff(watch.Event{Type: watch.Error, Object: gone}, nextEvent(t, w)); diff != "" {
		t.Errorf("an error event of the server must pass through unchanged (-want +got):\n%s", diff)
	}

	go source.Modify(&unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": "many"}}})
	event := nextEvent(t, w)
	status, ok := event.Object.(*metav1.Status)
	if event.Type != watch.Error || !ok {
		t.Fatalf(
			"got a %s event with %T for an object that cannot be converted, want an error event with a Status", event.Type,
			event.Object,
		)
	}
	if diff := cmp.Diff(metav1.StatusReasonInternalError, status.Reason); diff != "" {
		t.Errorf("reason (-want +got):\n%s", diff)
	}
}

// Duck typed lists with other types of items.
type (
	pointerList struct {
		metav1.TypeMeta `json:",inline"`
		metav1.ListMeta `json:"metadata,omitempty"`
		Items           []*Scalable `json:"items"`
	}
	looseList struct {
		metav1.TypeMeta `json:",inline"`
		metav1.ListMeta `json:"metadata,omitempty"`
		Items           []map[string]any `json:"items"`
	}
	emptyList struct {
		metav1.TypeMeta `json:",inline"`
		metav1.ListMeta `json:"metadata,omitempty"`
	}
)

func (l *pointerList) DeepCopyObject() runtime.Object { return l }
func (l *looseList) DeepCopyObject() runtime.Object   { return l }
func (l *emptyList) DeepCopyObject() runtime.Object   { return l }

func TestWatchItemTypes(t *testing.T) {
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"namespace": "ns", "name": "a"},
	}}
	tests := map[string]struct {
		reason string
		list   client.ObjectList
		want   runtime.Object
	}{
		"Values": {
			reason: "an item is an object",
			list:   &ScalableList{TypeMeta: deploymentList},
			want:   scalable("a"),
		},
		"Pointers": {
			reason: "an item is a pointer to an object",
			list:   &pointerList{TypeMeta: deploymentList},
			want:   scalable("a"),
		},
		"NoObjects": {
			reason: "an event cannot carry an item that is not an object",
			list:   &looseList{TypeMeta: deploymentList},
			want:   obj,
		},
		"NoItems": {
			reason: "the list does not define the type of its items",
			list:   &emptyList{TypeMeta: deploymentList},
			want:   obj,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			source := watch.NewFake()
			plain := interceptor.NewClient(cluster(), interceptor.Funcs{
				Watch: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
					return source, nil
				},
			})
			w, err := duck.NewDuckAwareClientWrapper(plain).(client.WithWatch).Watch(t.Context(), tt.list)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Stop()
			go source.Add(obj.DeepCopy())
			if diff := cmp.Diff(watch.Event{Type: watch.Added, Object: tt.want}, nextEvent(t, w)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

func TestWatchPanicsWithoutWatch(t *testing.T) {
	// hides the Watch method
	plain := struct{ client.Client }{cluster()}
	c := duck.NewDuckAwareClientWrapper(plain).(client.WithWatch)
	defer func() {
		const want = "unable to call Watch with wrapped client that does not implement client.WithWatch"
		if diff := cmp.Diff(any(want), recover()); diff != "" {
			t.Errorf("panic (-want +got):\n%s", diff)
		}
	}()
	_, _ = c.Watch(t.Context(), &ScalableList{TypeMeta: deploymentList})
	t.Error("Watch returned")
}
