// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"trueup.dev/internal/engine/step"
)

const (
	// maxDropped limits the fields that are kept of one run, and maxAnnounced limits the fields of a controller.
	maxDropped   = 20
	maxAnnounced = 1000
)

// droppedField is a field that the API server has not stored, because the schema of the kind does not have it. The
// server says so in a warning, and stores the rest.
type droppedField struct {
	path  []string // of the step
	field string
}

// droppedFields returns the fields in the warnings of an answer.
func droppedFields(header http.Header) (fields []string) {
	warnings, _ := utilnet.ParseWarningHeaders(header["Warning"]) // what can be parsed counts
	for _, warning := range warnings {
		quoted, ok := strings.CutPrefix(warning.Text, `unknown field "`)
		if field, _, closed := strings.Cut(quoted, `"`); ok && closed {
			fields = append(fields, field)
		}
	}
	return fields
}

// warningTransport passes the warnings about unknown fields to the run of the request.
type warningTransport struct{ http.RoundTripper }

// WrappedRoundTripper implements [utilnet.RoundTripperWrapper].
func (t *warningTransport) WrappedRoundTripper() http.RoundTripper { return t.RoundTripper }

// CloseIdleConnections is called by [http.Client].
func (t *warningTransport) CloseIdleConnections() { utilnet.CloseIdleConnectionsFor(t.RoundTripper) }

func (t *warningTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.RoundTripper.RoundTrip(request)
	if err != nil || len(response.Header["Warning"]) == 0 || request.Method == http.MethodGet {
		return response, err
	}
	if r := runningFrom(request.Context()); r != nil {
		r.drop(step.Names(request.Context()), droppedFields(response.Header))
	}
	return response, nil
}

// clientOf returns the HTTP client of a manager that has not started, or nil. After the start, others use the client.
// Managers of tests may lack methods that set-up did not need before.
func clientOf(mgr manager.Manager) (c *http.Client) {
	defer func() {
		if recover() != nil {
			c = nil
		}
	}()
	select {
	case <-mgr.Elected():
		return nil
	default:
		return mgr.GetHTTPClient()
	}
}

// observeWarnings makes the client of a manager pass on warnings, unless the manager has started.
func observeWarnings(mgr manager.Manager) {
	c := clientOf(mgr)
	if c == nil {
		return
	}
	if _, ok := c.Transport.(*warningTransport); ok {
		return
	}
	next := c.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	c.Transport = &warningTransport{next}
}

func (r *running) drop(path, fields []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rare := r.forRare()
	for _, field := range fields {
		if len(rare.dropped) < maxDropped {
			rare.dropped = append(rare.dropped, droppedField{path, field})
		}
	}
}

// takeDropped returns the fields that the last write of a step lost, and notes them for the event.
func (r *running) takeDropped(call *Call) (fields []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rare == nil || len(r.rare.dropped) == 0 {
		return nil
	}
	r.rare.dropped = slices.DeleteFunc(r.rare.dropped, func(d droppedField) bool {
		if !slices.Equal(d.path, call.Path) {
			return false
		}
		fields = append(fields, d.field)
		return true
	})
	if len(fields) > 0 && len(r.rare.lost) < maxDropped {
		object := call.Kind.Kind + " " + nameOf(call.Object)
		r.rare.lost = append(r.rare.lost, lostFields{call.Kind.GroupKind().String(), object, fields})
	}
	return fields
}

// lostFields are the fields that a write of an object lost.
type lostFields struct {
	kind, object string
	fields       []string
}

// TakeDropped describes the fields that the API server has not stored in writes of the run of a context, for an event.
// Each field of a kind is returned once for a controller.
func TakeDropped(ctx context.Context) (texts []string) {
	r := runningFrom(ctx)
	if r == nil {
		return nil
	}
	r.mu.Lock()
	var lost []lostFields
	if r.rare != nil {
		lost, r.rare.lost = r.rare.lost, nil
	}
	r.mu.Unlock()
	for _, l := range lost {
		if fields := r.controller.announce(l.kind, l.fields); len(fields) > 0 {
			texts = append(texts, fmt.Sprintf("The API server has not stored %s of %s: the schema of the kind does not have "+
				"it. Apply the CustomResourceDefinition of this version", strings.Join(fields, ", "), l.object))
		}
	}
	return texts
}

// announce returns the fields of a kind that were not returned before.
func (c *controllerObserver) announce(kind string, fields []string) (fresh []string) {
	c.announcedMu.Lock()
	defer c.announcedMu.Unlock()
	if c.announced == nil {
		c.announced = map[string]bool{}
	}
	for _, field := range fields {
		key := kind + " " + field
		if !c.announced[key] && len(c.announced) < maxAnnounced {
			c.announced[key] = true
			fresh = append(fresh, field)
		}
	}
	return fresh
}
