// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"cmp"
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/phrase"
	"trueup.dev/internal/memapi/httpapi"
)

// GetConfig returns the configuration of clients that send HTTP requests. Their requests are calls of the process, with
// the same faults as those of its APIReader and of its client. As with the configuration of a manager, the user agent
// is set, from which some operators take the name of their field manager.
func (m *processManager) GetConfig() *rest.Config {
	return &rest.Config{Host: "http://converge.invalid", QPS: -1, UserAgent: phrase.Manager, Transport: m.transport()}
}

// GetHTTPClient returns the HTTP client of GetConfig.
func (m *processManager) GetHTTPClient() *http.Client { return &http.Client{Transport: m.transport()} }

func (m *processManager) transport() *httpapi.Transport {
	p := m.process
	live := newProcessClient(p.run.world.server.Client(p.program.client), p, true)
	return &httpapi.Transport{Client: &watchingClient{live}, Registry: p.run.running.registry}
}

// watchingClient is a client of a process that can also watch the API server.
type watchingClient struct{ *processClient }

var _ client.WithWatch = (*watchingClient)(nil)

// Watch watches objects until the process ends. Events arrive at once, and there are no faults: informers of client-go
// retry after a random time.
func (c *watchingClient) Watch(
	ctx context.Context, list client.ObjectList, opts ...client.ListOption,
) (watch.Interface, error) {
	gvk, err := c.kindOf(list)
	if err != nil {
		return nil, err
	}
	var (
		events watch.Interface
		failed error
	)
	server := c.process.run.world.server.Client(c.process.program.client)
	err = c.process.submit(ctx, &call{
		Site: inject.Site{Act: "live watch", Kind: gvk.Kind},
		begin: func() {
			if failed = c.process.run.watchPermitted(c.process, gvk, opts); failed == nil {
				events, failed = server.Watch(ctx, list, opts...)
			}
		},
	})
	if err = cmp.Or(err, failed); err != nil {
		return nil, err
	}
	context.AfterFunc(c.process.ctx, events.Stop)
	return events, nil
}
