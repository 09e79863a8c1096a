// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"fmt"
	"net/http"
	"time"
)

const (
	// maxStreams limits how many pages are updated at the same time.
	maxStreams = 16
	// interval is the time between updates of a page.
	interval = time.Second
	// heartbeat is the time after which a line is sent without an update, so that proxies keep the connection.
	heartbeat = 15 * time.Second
)

// stream sends the content of a page each time it has changed, at most once a second, as server-sent events.
func (h *handler) stream(w http.ResponseWriter, r *http.Request, load load) {
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", formatStream)
		return
	}
	select {
	case h.streams <- struct{}{}:
		defer func() { <-h.streams }()
	default:
		http.Error(w, "too many pages are being updated; close some", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", formatStream)
	controller := http.NewResponseController(w)
	ticks := time.NewTicker(interval)
	defer ticks.Stop()
	var version uint64
	for sent := (time.Time{}); ; {
		current := h.recorder.Version()
		var event []byte
		if sent.IsZero() || current != version {
			event = contentEvent(r, load)
		} else if time.Since(sent) > heartbeat {
			event = []byte(": nothing has changed\n\n")
		}
		if event != nil {
			version, sent = current, time.Now()
			if _, err := w.Write(event); err != nil {
				return
			}
			if err := controller.Flush(); err != nil {
				return
			}
		}
		select {
		case <-r.Context().Done():
			return
		case <-ticks.C:
		}
	}
}

// contentEvent returns the content of a page as an event.
func contentEvent(r *http.Request, load load) []byte {
	p, ok := load(r)
	if !ok {
		p.Template, p.Title = "missing", "Not found"
	}
	p.Base, p.Now = base(r), time.Now()
	content, err := render("content", p)
	if err != nil {
		content = []byte("the page cannot be shown")
	}
	var event bytes.Buffer
	for line := range bytes.Lines(content) {
		fmt.Fprintf(&event, "data: %s\n", bytes.TrimRight(line, "\r\n"))
	}
	event.WriteString("\n")
	return event.Bytes()
}
