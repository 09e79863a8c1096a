// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	objectreference "k8s.io/client-go/tools/reference"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Event is an event that a reconciler emits. Those of the older API, from Config.Recorder, have a Message; make them
// with [NewEvent]. Those of the newer API, from Config.Eventf, have an Action and a Note instead, and may have a
// Related object; make them with [NewEventf]. The reconcilers of this module emit the older kind.
type Event struct {
	// TypeMeta is the kind of the object the event is about.
	metav1.TypeMeta
	// NamespacedName is the name of the object the event is about.
	types.NamespacedName
	// Related is a second object of the event, nil when there is none.
	Related *corev1.ObjectReference
	// Type is Normal or Warning.
	Type string
	// Reason is why the event was emitted, a word in CamelCase.
	Reason string
	// Message is what people read in an event of the older API.
	Message string
	// Action is what was done, a word in CamelCase.
	Action string
	// Note is what people read in an event of the newer API.
	Note string
}

// NewEvent returns the event that Config.Recorder emits about an object, as the reconcilers of this module do. The
// message is formatted as by [fmt.Sprintf]. It panics when the kind of the object is neither set on it nor in the
// scheme. Events from Config.Eventf are made with [NewEventf].
func NewEvent(
	factory client.Object, scheme *runtime.Scheme, eventtype, reason, messageFormat string, a ...interface{},
) Event {
	return must(
		newEvent(factory, nil, scheme, Event{Type: eventtype, Reason: reason, Message: fmt.Sprintf(messageFormat, a...)}),
	)
}

// NewEventf returns the event that Config.Eventf emits about an object and a related one, which may be nil. The note is
// formatted as by [fmt.Sprintf]. It panics when the kind of an object is neither set on it nor in the scheme.
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
	if isNil(related) {
		return event, nil
	}
	if event.Related, err = referenceTo(related, scheme); err != nil {
		return event, fmt.Errorf("event %s with related %T: %w", event.Reason, related, err)
	}
	return event, nil
}

// referenceTo returns a reference to an object, or to what it unwraps to.
func referenceTo(obj runtime.Object, scheme *runtime.Scheme) (*corev1.ObjectReference, error) {
	if isNil(obj) {
		return nil, objectreference.ErrNilObject
	}
	return objectreference.GetReference(scheme, obj.DeepCopyObject())
}

// must is for the constructors of expectations: they are called in the literals of test tables, where there is nobody
// to return an error to.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
