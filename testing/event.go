// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	legacyevents "k8s.io/client-go/tools/record"
	objectreference "k8s.io/client-go/tools/reference"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/objects/nilcheck"
)

// Event is an event that a reconciler emits. Events of the older API, from Config.Recorder, have a Message; create them
// with [NewEvent]. Events of the newer API, from Config.Eventf, have an Action and a Note instead, and may have a
// Related object; create them with [NewEventf]. The reconcilers of this module use the older API.
type Event struct {
	// TypeMeta is the kind of the object that the event regards.
	metav1.TypeMeta
	// NamespacedName is the name of the object that the event regards.
	types.NamespacedName
	// Related is a second object of the event, nil for none.
	Related *corev1.ObjectReference
	// Type is Normal or Warning.
	Type string
	// Reason is the reason for the event, a word in CamelCase.
	Reason string
	// Message is the text of an event of the older API.
	Message string
	// Action is the action that was taken, a word in CamelCase.
	Action string
	// Note is the text of an event of the newer API.
	Note string
}

// NewEvent returns the event that Config.Recorder emits for an object, as the reconcilers of this module do. The
// message is formatted as by [fmt.Sprintf]. NewEvent panics if the kind of the object is neither set on it nor in the
// scheme.
func NewEvent(
	regarding client.Object, scheme *runtime.Scheme, eventtype, reason, messageFormat string, a ...interface{},
) Event {
	return must(
		newEvent(regarding, nil, scheme, Event{Type: eventtype, Reason: reason, Message: fmt.Sprintf(messageFormat, a...)}),
	)
}

// NewEventf returns the event that Config.Eventf emits for an object and a related one, which may be nil. The note is
// formatted as by [fmt.Sprintf]. NewEventf panics if the kind of an object is neither set on it nor in the scheme.
func NewEventf(
	regarding, related client.Object, scheme *runtime.Scheme, eventtype, reason, action, note string, a ...interface{},
) Event {
	return must(
		newEvent(regarding, related, scheme, Event{
			Type: eventtype, Reason: reason, Action: action, Note: fmt.Sprintf(note, a...),
		}),
	)
}

// newEvent adds the objects to an event.
func newEvent(regarding, related runtime.Object, scheme *runtime.Scheme, event Event) (Event, error) {
	about, err := referenceTo(regarding, scheme)
	if err != nil {
		return event, fmt.Errorf("event %s about %T: %w", event.Reason, regarding, err)
	}
	event.APIVersion, event.Kind = about.APIVersion, about.Kind
	event.Namespace, event.Name = about.Namespace, about.Name
	if nilcheck.IsNil(related) {
		return event, nil
	}
	if event.Related, err = referenceTo(related, scheme); err != nil {
		return event, fmt.Errorf("event %s with related %T: %w", event.Reason, related, err)
	}
	return event, nil
}

// referenceTo returns a reference to an object, or to the object that it wraps.
func referenceTo(obj runtime.Object, scheme *runtime.Scheme) (*corev1.ObjectReference, error) {
	if nilcheck.IsNil(obj) {
		return nil, objectreference.ErrNilObject
	}
	return objectreference.GetReference(scheme, obj.DeepCopyObject())
}

// must panics with the error of a constructor of expectations. Literals of test tables call constructors, and cannot
// handle an error.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

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
