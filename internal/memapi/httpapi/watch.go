// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"encoding/json"
	"io"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

func (r *request) watch() (any, error) {
	options, err := r.listOptions()
	if err != nil {
		return nil, err
	}
	events, err := r.client.Watch(r.Context(), r.newList(), options)
	if err != nil {
		return nil, err
	}
	closed, stop := context.WithCancel(r.Context())
	s := &stream{events: events, closed: closed, stop: stop, metadata: r.asMetadata()}
	if r.asTable() {
		s.table = r.table
	}
	return s, nil
}

// stream is the body of the response to a watch: a line for each event.
type stream struct {
	events   watch.Interface
	closed   context.Context
	stop     context.CancelFunc
	metadata bool
	newEvent bool // see asNewEvent
	// table returns the object of an event as a Table, nil for other watches.
	table func(content any) (*metav1.Table, error)

	mu   sync.Mutex
	rest []byte
}

var _ io.ReadCloser = (*stream)(nil)

// Read waits for the next event if the last one was read. It returns io.EOF after the end of the watch.
func (s *stream) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.rest) == 0 {
		select {
		case <-s.closed.Done():
			return 0, s.closed.Err()
		case event, ok := <-s.events.ResultChan():
			if !ok {
				return 0, io.EOF
			}
			line, err := s.encode(event)
			if err != nil {
				return 0, err
			}
			s.rest = line
		}
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

func (s *stream) encode(event watch.Event) ([]byte, error) {
	if partial, ok := event.Object.(*metav1.PartialObjectMetadata); ok && s.metadata {
		partial.SetGroupVersionKind(partialKind)
	}
	if status, ok := event.Object.(*metav1.Status); ok {
		status.Kind, status.APIVersion = "Status", "v1"
	}
	var object any = event.Object
	if _, failed := object.(*metav1.Status); s.table != nil && !failed {
		var err error
		if object, err = s.table(object); err != nil {
			return nil, err
		}
	}
	if s.newEvent {
		object = asNewEvent(object)
	}
	line, err := json.Marshal(struct {
		Type   watch.EventType `json:"type"`
		Object any             `json:"object"`
	}{event.Type, object})
	return append(line, '\n'), err
}

// Close ends the watch.
func (s *stream) Close() error {
	s.stop()
	s.events.Stop()
	return nil
}
