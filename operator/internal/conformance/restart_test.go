// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/operator"
	"trueup.dev/reconcilers"
)

// marked is a method to mark a resource as handled, for later processes.
type marked[T client.Object] struct {
	handler func(n *notebook[T]) reconcilers.SubReconciler[T]
	create  func(value string) T
	change  func(obj T, value string)
	// settled returns nil when the first process has finished its work for an object.
	settled func(obj T) error
	want    afterRestart
}

// afterRestart lists the expected calls of the second process.
type afterRestart struct {
	// In crashBefore the process ended after it had set the finalizer and before its call succeeded. In crashAfter it
	// ended after the success and before any later write.
	crashBefore, crashAfter string
	// The first process has ended gracefully.
	unchanged, changed, deleted, recreated string
}

// kept returns an error unless the object has exactly this finalizer.
func kept(obj client.Object) error {
	if diff := cmp.Diff([]string{finalizer}, obj.GetFinalizers()); diff != "" {
		return fmt.Errorf("finalizers (-want +got):\n%s", diff)
	}
	return nil
}

func TestRestart_ObservedGeneration(t *testing.T) {
	marked[*fixture.Resource]{
		handler: func(n *notebook[*fixture.Resource]) handler { return operator.OpinionatedWatcher(finalizer, n) },
		create:  func(value string) *fixture.Resource { return newResource("a", value) },
		change:  func(r *fixture.Resource, value string) { setValue(value)(r) },
		settled: isObserved,
		want: afterRestart{
			crashBefore: "Add a 1", crashAfter: "Add a 1",
			unchanged: "Sync a 1", changed: "Sync a 2", deleted: "Delete a 1", recreated: "Add a 2",
		},
	}.run(t)
}

// Without a separate mark, the finalizer is the mark: after a first call that did not succeed, Sync is called.
func TestRestart_Finalizer(t *testing.T) {
	marked[*corev1.ConfigMap]{
		handler: func(n *notebook[*corev1.ConfigMap]) reconcilers.SubReconciler[*corev1.ConfigMap] {
			return operator.OpinionatedWatcher(finalizer, n)
		},
		create:  func(value string) *corev1.ConfigMap { return newConfigMap("a", value) },
		change:  func(cm *corev1.ConfigMap, value string) { cm.Data["value"] = value },
		settled: func(cm *corev1.ConfigMap) error { return kept(cm) },
		want: afterRestart{
			crashBefore: "Sync a 1", crashAfter: "Sync a 1",
			unchanged: "Sync a 1", changed: "Sync a 2", deleted: "Delete a 1", recreated: "Add a 2",
		},
	}.run(t)
}

func TestRestart_InProgressFinalizer(t *testing.T) {
	marked[*corev1.ConfigMap]{
		handler: func(n *notebook[*corev1.ConfigMap]) reconcilers.SubReconciler[*corev1.ConfigMap] {
			o := operator.OpinionatedWatcher(finalizer, n)
			o.InProgressFinalizer = finalizer + "-wip"
			return o
		},
		create:  func(value string) *corev1.ConfigMap { return newConfigMap("a", value) },
		change:  func(cm *corev1.ConfigMap, value string) { cm.Data["value"] = value },
		settled: func(cm *corev1.ConfigMap) error { return kept(cm) },
		want: afterRestart{
			crashBefore: "Add a 1", crashAfter: "Add a 1",
			unchanged: "Sync a 1", changed: "Sync a 2", deleted: "Delete a 1", recreated: "Add a 2",
		},
	}.run(t)
}

// A plain handler leaves no mark: every object is new, and deletions during the downtime are unknown.
func TestRestart_Plain(t *testing.T) {
	marked[*fixture.Resource]{
		handler: func(n *notebook[*fixture.Resource]) handler { return operator.WatcherReconciler(n) },
		create:  func(value string) *fixture.Resource { return newResource("a", value) },
		change:  func(r *fixture.Resource, value string) { setValue(value)(r) },
		settled: func(*fixture.Resource) error { return nil },
		want: afterRestart{
			crashBefore: "Add a 1", crashAfter: "Add a 1",
			unchanged: "Add a 1", changed: "Add a 2", deleted: "", recreated: "Add a 2",
		},
	}.run(t)
}

func (m marked[T]) run(t *testing.T) {
	nothing := func(*env, T) {}
	for name, tc := range map[string]struct {
		first func(t *testing.T, e *env, n *notebook[T])
		// down runs while no process runs.
		down func(e *env, obj T)
		want string
	}{
		"crash before the first call has succeeded": {first: m.crashBefore, down: nothing, want: m.want.crashBefore},
		"crash after the first call":                {first: m.crashAfter, down: nothing, want: m.want.crashAfter},
		"unchanged":                                 {first: m.inPeace, down: nothing, want: m.want.unchanged},
		"changed": {
			first: m.inPeace, down: func(e *env, obj T) { change(e, obj, func(obj T) { m.change(obj, "2") }) },
			want: m.want.changed,
		},
		"deleted": {
			first: m.inPeace, down: func(e *env, obj T) { e.remove(obj) }, want: m.want.deleted,
		},
		"replaced, after another client removed the finalizer": {first: m.inPeace, want: m.want.recreated, down: func(
			e *env, obj T,
		) {
			e.strip(obj)
			e.remove(obj)
			e.create(m.create("2"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			n := &notebook[T]{}
			e.create(m.create("1"))
			tc.first(t, e, n)
			e.traffic.refusing(nil)
			n.take()
			n.answers(nil)
			obj := m.create("")
			e.Must(e.read(obj))
			tc.down(e, obj)

			e.start(singly(m.handler(n)))
			fence := m.create("fence")
			fence.SetName("fence")
			if tc.want != "" {
				n.awaitLines(t, tc.want)
			}
			e.create(fence)
			n.awaitLines(t, "Add fence fence") // and no other call
			if tc.want == m.want.deleted {
				e.gone(m.create(""))
			}
		})
	}
}

// inPeace runs a process that finishes its work.
func (m marked[T]) inPeace(t *testing.T, e *env, n *notebook[T]) {
	stop := e.start(singly(m.handler(n)))
	n.awaitLines(t, "Add a 1")
	until(e, m.create(""), m.settled)
	stop()
}

// crashBefore runs a process that ends during the first failure of its handler.
func (m marked[T]) crashBefore(_ *testing.T, e *env, n *notebook[T]) {
	n.answer = func(string, T) error { return errTest }
	stop := e.start(singly(m.handler(n)))
	e.Eventually(func() error {
		if len(n.all()) == 0 {
			return errors.New("the handler was not called")
		}
		return nil
	})
	stop()
}

// crashAfter runs a process that can no longer write after its handler has succeeded.
func (m marked[T]) crashAfter(t *testing.T, e *env, n *notebook[T]) {
	n.answer = func(string, T) error {
		e.traffic.refusing(func(request *http.Request) bool { return request.Method != http.MethodGet })
		return nil
	}
	stop := e.start(singly(m.handler(n)))
	n.awaitLines(t, "Add a 1")
	stop()
}
