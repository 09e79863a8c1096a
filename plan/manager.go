// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"trueup.dev/internal/ctrlfields"
	"trueup.dev/internal/offline"
)

// manager is the manager that the set-up function receives.
type manager struct {
	offline.Manager

	queues []*queue
	events *events
}

var _ ctrlmanager.Manager = (*manager)(nil)

// Add keeps a runnable. A controller gets a queue that starts no reconciles.
func (m *manager) Add(runnable ctrlmanager.Runnable) error {
	controller, ok := ctrlfields.ControllerOf(runnable)
	if !ok {
		return m.Manager.Add(runnable)
	}
	q := &queue{name: controller.Name(), reconciler: controller.Reconciler(), runnable: runnable}
	q.started, q.stopped = make(chan struct{}), make(chan struct{})
	controller.SetNewQueue(func(
		string, workqueue.TypedRateLimiter[reconcile.Request],
	) workqueue.TypedRateLimitingInterface[reconcile.Request] {
		return q
	})
	m.queues = append(m.queues, q)
	return nil
}

// GetWebhookServer returns a server that serves nothing.
func (m *manager) GetWebhookServer() webhook.Server { return noWebhooks{m.Manager.GetWebhookServer()} }

// noWebhooks is a webhook server without handlers.
type noWebhooks struct{ webhook.Server }

// Register does nothing.
func (noWebhooks) Register(string, http.Handler) {}

// GetEventRecorderFor returns a recorder that adds events to the plan.
func (m *manager) GetEventRecorderFor(string) record.EventRecorder { return m.events }

// GetEventRecorder returns a recorder that adds events to the plan.
func (m *manager) GetEventRecorder(string) recorder.EventRecorder { return regarding{m.events} }

// events are the events of the current plan.
type events struct {
	scheme *runtime.Scheme

	mu   sync.Mutex
	list []Event
}

var _ record.EventRecorder = (*events)(nil)

// take returns the events since the last call.
func (e *events) take() []Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := e.list
	e.list = nil
	return list
}

// Event implements [record.EventRecorder].
func (e *events) Event(object runtime.Object, eventType, reason, message string) {
	id, _ := identify(e.scheme, object)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, Event{
		Kind: id.kind.Kind, Namespace: id.key.Namespace, Name: id.key.Name,
		Type: eventType, Reason: reason, Message: message,
	})
}

// Eventf implements [record.EventRecorder].
func (e *events) Eventf(object runtime.Object, eventType, reason, format string, args ...any) {
	e.Event(object, eventType, reason, fmt.Sprintf(format, args...))
}

// AnnotatedEventf implements [record.EventRecorder].
func (e *events) AnnotatedEventf(
	object runtime.Object, _ map[string]string, eventType, reason, format string, args ...any,
) {
	e.Eventf(object, eventType, reason, format, args...)
}

// regarding records events of the group events.k8s.io.
type regarding struct{ events *events }

// Eventf implements [recorder.EventRecorder].
func (r regarding) Eventf(object, _ runtime.Object, eventType, reason, _, note string, args ...any) {
	r.events.Eventf(object, eventType, reason, note, args...)
}

// AnnotatedEventf implements [recorder.EventRecorder].
func (r regarding) AnnotatedEventf(
	object, _ runtime.Object, _ map[string]string, eventType, reason, _, note string, args ...any,
) {
	r.events.Eventf(object, eventType, reason, note, args...)
}
