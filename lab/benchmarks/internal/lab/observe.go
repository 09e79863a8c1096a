// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"trueup.dev/console"
	"trueup.dev/observe"
	"trueup.dev/observe/metrics"
	"trueup.dev/observe/recorder"
)

// What observes the controllers that are built with trueup. Hand-written ones are not observed.
const (
	ObserveNothing  = "nothing"
	ObserveMetrics  = "metrics" // the default of trueup
	ObserveRecorder = "recorder"
	ObserveConsole  = "console"
)

// Observers are all values of [Options.Observe].
func Observers() []string {
	return []string{ObserveNothing, ObserveMetrics, ObserveRecorder, ObserveConsole}
}

// observe adds what observes the controllers of a manager. A console has a reader who keeps the page of all objects
// open, which is updated each second, and who loads it again each second.
func (t *Trial) observe(ctx context.Context, mgr ctrl.Manager) error {
	switch t.options.Observe {
	case ObserveMetrics:
	case ObserveNothing:
		observe.Of(mgr).Remove(metrics.Default())
	case ObserveRecorder:
		observe.Of(mgr).Add(recorder.New(recorder.Options{}))
	case ObserveConsole:
		r := recorder.New(recorder.Options{})
		observe.Of(mgr).Add(r)
		server := httptest.NewServer(console.Handler(r))
		context.AfterFunc(ctx, func() {
			server.CloseClientConnections()
			server.Close()
		})
		for _, accept := range []string{"text/html", "text/event-stream"} {
			go keepReading(ctx, server.URL, accept)
		}
	default:
		return fmt.Errorf("what observes the controllers must be one of %v, got %q", Observers(), t.options.Observe)
	}
	return nil
}

// keepReading reads a page until ctx is done. It loads a page that ends again after a second.
func keepReading(ctx context.Context, url, accept string) {
	for ctx.Err() == nil {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return
		}
		request.Header.Set("Accept", accept)
		if response, err := http.DefaultClient.Do(request); err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}
