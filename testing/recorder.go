// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	legacyevents "k8s.io/client-go/tools/record"
)

// eventLog has the events of both recorders of a config, in one order. It is safe for concurrent use.
type eventLog struct {
	scheme *runtime.Scheme

	mu     sync.Mutex
	events []Event
	// failed are the reasons for which a real recorder drops events.
	failed []string
}

func (l *eventLog) add(regarding, related runtime.Object, event Event) {
	event, err := newEvent(regarding, related, l.scheme, event)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.failed = append(l.failed, err.Error())
		return
	}
	l.events = append(l.events, event)
}

// observed returns the events, and the reasons for which others were dropped.
func (l *eventLog) observed() (emitted []Event, failed []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.events), slices.Clone(l.failed)
}

// recorder emits events of the older API.
type recorder struct{ log *eventLog }

var _ legacyevents.EventRecorder = recorder{}

func (r recorder) Event(obj runtime.Object, eventtype, reason, message string) {
	r.log.add(obj, nil, Event{Type: eventtype, Reason: reason, Message: message})
}

func (r recorder) Eventf(obj runtime.Object, eventtype, reason, messageFmt string, args ...interface{}) {
	r.Event(obj, eventtype, reason, fmt.Sprintf(messageFmt, args...))
}

func (r recorder) AnnotatedEventf(
	obj runtime.Object, _ map[string]string, eventtype, reason, messageFmt string, args ...interface{},
) {
	r.Eventf(obj, eventtype, reason, messageFmt, args...)
}

// eventRecorder emits events of the newer API.
type eventRecorder struct{ log *eventLog }

var (
	_ events.EventRecorder          = eventRecorder{}
	_ events.AnnotatedEventRecorder = eventRecorder{}
)

func (r eventRecorder) Eventf(
	regarding, related runtime.Object, eventtype, reason, action, note string, args ...interface{},
) {
	r.log.add(regarding, related, Event{Type: eventtype, Reason: reason, Action: action, Note: fmt.Sprintf(note, args...)})
}

func (r eventRecorder) AnnotatedEventf(
	regarding, related runtime.Object, _ map[string]string, eventtype, reason, action, note string, args ...interface{},
) {
	r.Eventf(regarding, related, eventtype, reason, action, note, args...)
}
