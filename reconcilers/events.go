// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
)

// EventOptions select which events are recorded on reconciled objects. The zero value selects all.
type EventOptions struct {
	// DisableNormal drops events of type Normal, for example Created and StatusUpdated. Defaults to false.
	DisableNormal bool
	// DisableWarning drops events of type Warning, for example ReconcileFailed, HotLoop and FieldConflict. Defaults to
	// false.
	DisableWarning bool
	// Interval is the minimum time between two events of an object with the same type, reason and message. Earlier ones
	// are dropped. It applies to configs of [NewConfig]. Defaults to 0: all are recorded, and the recorder of client-go
	// merges equal ones and limits their rate.
	Interval time.Duration
}

// RecordEvent records an event about an object with the Recorder of the config, as far as Events selects it. eventType
// is Normal or Warning. The message is formatted as by [fmt.Sprintf]. RecordEvent does nothing without a Recorder. It
// is safe for concurrent use.
func (c Config) RecordEvent(obj runtime.Object, eventType, reason, format string, args ...any) {
	c.recorder().Eventf(obj, eventType, reason, format, args...)
}

// noEvents is a recorder that drops all events.
var noEvents record.EventRecorder = &record.FakeRecorder{}

// recorder returns the Recorder, limited to the events that are selected.
func (c Config) recorder() record.EventRecorder {
	switch {
	case c.Recorder == nil:
		return noEvents
	case c.Events == EventOptions{}:
		return c.Recorder
	}
	return &selectiveRecorder{c.Recorder, c.Events, c.recorded}
}

// selectiveRecorder drops events.
type selectiveRecorder struct {
	record.EventRecorder
	options  EventOptions
	recorded *recordedEvents // may be nil
}

func (r *selectiveRecorder) Event(obj runtime.Object, eventType, reason, message string) {
	if r.selects(obj, eventType, reason, message) {
		r.EventRecorder.Event(obj, eventType, reason, message)
	}
}

func (r *selectiveRecorder) Eventf(obj runtime.Object, eventType, reason, format string, args ...any) {
	if r.selects(obj, eventType, reason, fmt.Sprintf(format, args...)) {
		r.EventRecorder.Eventf(obj, eventType, reason, format, args...)
	}
}

func (r *selectiveRecorder) selects(obj runtime.Object, eventType, reason, message string) bool {
	switch {
	case eventType == corev1.EventTypeNormal && r.options.DisableNormal:
		return false
	case eventType == corev1.EventTypeWarning && r.options.DisableWarning:
		return false
	case r.options.Interval <= 0 || r.recorded == nil:
		return true
	}
	about, err := meta.Accessor(obj)
	if err != nil {
		return true
	}
	key := eventKey{
		kind: fmt.Sprintf("%T", obj), uid: about.GetUID(), eventType: eventType, reason: reason,
		message: maphash.String(messageSeed, message),
	}
	key.object.Namespace, key.object.Name = about.GetNamespace(), about.GetName()
	return r.recorded.add(key, time.Now(), r.options.Interval)
}

// validEvents changes events that the API server would refuse, which is only logged by klog.
type validEvents struct{ recorder.EventRecorder }

func (e validEvents) Eventf(
	regarding, related runtime.Object, eventType, reason, action, note string, args ...any,
) {
	note = truncate(fmt.Sprintf(note, args...))
	e.EventRecorder.Eventf(regarding, related, eventType, reason, cmp.Or(action, reason), "%s", note)
}

func (e validEvents) AnnotatedEventf(
	regarding, related runtime.Object, annotations map[string]string, eventType, reason, action, note string, args ...any,
) {
	note = truncate(fmt.Sprintf(note, args...))
	e.EventRecorder.AnnotatedEventf(
		regarding, related, annotations, eventType, reason, cmp.Or(action, reason), "%s", note,
	)
}

// maxRecordedEvents limits the events that are remembered for [EventOptions.Interval].
const maxRecordedEvents = 10_000

// recordedEvents remembers when events were recorded. It is safe for concurrent use.
type recordedEvents struct {
	mu   sync.Mutex
	last map[eventKey]time.Time
}

type eventKey struct {
	kind              string
	uid               types.UID
	object            types.NamespacedName
	eventType, reason string
	message           uint64 // its hash
}

var messageSeed = maphash.MakeSeed()

// add remembers an event, unless an equal one was recorded within the interval. It reports whether it did.
func (r *recordedEvents) add(key eventKey, now time.Time, interval time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last, ok := r.last[key]; ok && now.Sub(last) < interval {
		return false
	}
	if r.last == nil {
		r.last = map[eventKey]time.Time{}
	}
	if len(r.last) >= maxRecordedEvents {
		for other, last := range r.last {
			if now.Sub(last) >= interval {
				delete(r.last, other)
			}
		}
		for other := range r.last {
			if len(r.last) < maxRecordedEvents {
				break
			}
			delete(r.last, other) // its next event is recorded early
		}
	}
	r.last[key] = now
	return true
}
