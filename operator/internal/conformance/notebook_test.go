// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/await"
	"trueup.dev/internal/fixture"
	"trueup.dev/operator"
)

// patience is how long something may take before a test gives it up.
const patience = 30 * time.Second

// notebook is a watcher that notes its calls, a line each: "Add a 1" is for the object a with the value 1, and "Update a 1>2" for its change to 2.
type notebook[T client.Object] struct {
	// answer, unless it is nil, is called for each line and tells what the watcher returns.
	answer func(line string, object T) error

	mu    sync.Mutex
	lines []string
	begun map[string]bool
	// overlaps are calls for one object that were made while another one was under way.
	overlaps int
}

var _ operator.Syncer[*fixture.Resource] = (*notebook[*fixture.Resource])(nil)

func (n *notebook[T]) Add(_ context.Context, object T) error {
	return n.note("Add", object, "")
}

func (n *notebook[T]) Update(_ context.Context, previous, object T) error {
	return n.note("Update", object, valueOf(previous)+">")
}

func (n *notebook[T]) Delete(_ context.Context, object T) error {
	return n.note("Delete", object, "")
}

func (n *notebook[T]) Sync(_ context.Context, object T) error {
	return n.note("Sync", object, "")
}

func (n *notebook[T]) note(verb string, object T, from string) error {
	line := fmt.Sprintf("%s %s %s%s", verb, object.GetName(), from, valueOf(object))
	key := string(object.GetUID())
	n.mu.Lock()
	n.lines = append(n.lines, line)
	if n.begun == nil {
		n.begun = map[string]bool{}
	}
	if n.begun[key] {
		n.overlaps++
	}
	n.begun[key] = true
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.begun[key] = false
	}()
	if n.answer != nil {
		return n.answer(line, object)
	}
	return nil
}

// all returns the lines since the last take.
func (n *notebook[T]) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.lines)
}

// take returns the lines since it was called last.
func (n *notebook[T]) take() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	lines := n.lines
	n.lines = nil
	return lines
}

// wantLines fails the test unless the lines since the last take are these.
func (n *notebook[T]) wantLines(t testing.TB, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, n.take()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// awaitLines waits for the lines since the last take to be these.
func (n *notebook[T]) awaitLines(t testing.TB, want ...string) {
	t.Helper()
	await.Nil(t, patience, func() error {
		if diff := cmp.Diff(want, n.all()); diff != "" {
			return fmt.Errorf("calls (-want +got):\n%s", diff)
		}
		return nil
	})
	n.take()
}

// valueOf is the part of an object that tests change.
func valueOf(obj client.Object) string {
	switch obj := obj.(type) {
	case *fixture.Resource:
		return obj.Spec.Fields["value"]
	case *corev1.ConfigMap:
		return obj.Data["value"]
	}
	return fmt.Sprintf("%T", obj)
}
