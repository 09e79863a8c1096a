// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/operator"
)

// notebook is a watcher that records its calls, one line per call: "Add a 1" for the object a with the value 1, and
// "Update a 1>2" for its change to 2.
type notebook[T client.Object] struct {
	// answer, if set, is called for each line and returns the result of the watcher.
	answer func(line string, object T) error

	notes
	begun map[string]bool
	// overlaps counts calls for an object that began during another call for the same object.
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
	answer := n.answer
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.begun[key] = false
	}()
	if answer != nil {
		return answer(line, object)
	}
	return nil
}

func (n *notebook[T]) overlapping() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.overlaps
}

// answers sets the results of the watcher from now on.
func (n *notebook[T]) answers(answer func(line string, object T) error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.answer = answer
}

// valueOf returns the part of an object that tests change.
func valueOf(obj client.Object) string {
	switch obj := obj.(type) {
	case *fixture.Resource:
		return obj.Spec.Fields["value"]
	case *corev1.ConfigMap:
		return obj.Data["value"]
	}
	return fmt.Sprintf("%T", obj)
}
