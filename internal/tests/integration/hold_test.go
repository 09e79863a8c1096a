// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"io"
	"net/http"
	"strings"
	"sync"
)

// watches delays watch events: the caches of managers do not change until the events are released.
type watches struct {
	mu   sync.Mutex
	held map[string]chan struct{} // by plural
}

func (w *watches) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if err == nil && request.URL.Query().Get("watch") == "true" {
			path := strings.Split(request.URL.Path, "/")
			response.Body = &heldBody{
				ReadCloser: response.Body, watches: w, plural: path[len(path)-1], closed: make(chan struct{}),
			}
		}
		return response, err
	})
}

// hold delays the changes of a kind from now on.
func (w *watches) hold(plural string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held == nil {
		w.held = map[string]chan struct{}{}
	}
	if w.held[plural] == nil {
		w.held[plural] = make(chan struct{})
	}
}

// release delivers the delayed changes.
func (w *watches) release(plural string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if held := w.held[plural]; held != nil {
		close(held)
		delete(w.held, plural)
	}
}

func (w *watches) of(plural string) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if held := w.held[plural]; held != nil {
		return held
	}
	free := make(chan struct{})
	close(free)
	return free
}

type heldBody struct {
	io.ReadCloser
	watches *watches
	plural  string
	once    sync.Once
	closed  chan struct{}
}

// Read reads first and then delays the data, because data that arrives while changes are delayed must not pass.
func (b *heldBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	select {
	case <-b.watches.of(b.plural):
		return n, err
	case <-b.closed:
		return 0, io.ErrClosedPipe
	}
}

func (b *heldBody) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.ReadCloser.Close()
}
