// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trueup.dev/lab/benchmarks/internal/traffic"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// answer returns a transport that gives the same response to every request.
func answer(status int, err error) http.RoundTripper {
	return roundTripper(func(*http.Request) (*http.Response, error) {
		if err != nil {
			return nil, err
		}
		return &http.Response{StatusCode: status, Body: http.NoBody}, nil
	})
}

func send(t *testing.T, transport http.RoundTripper, method, path string) {
	t.Helper()
	response, err := transport.RoundTrip(httptest.NewRequest(method, path, nil))
	if err == nil {
		response.Body.Close()
	}
}

func TestCounter_Kinds(t *testing.T) {
	for name, test := range map[string]struct {
		method, path string
		want         traffic.Request // empty for requests that are not counted
	}{
		"get": {
			http.MethodGet, "/api/v1/namespaces/n/configmaps/c", traffic.Request{Verb: "get", Resource: "configmaps"},
		},
		"list": {
			http.MethodGet, "/api/v1/namespaces/n/configmaps?limit=5", traffic.Request{Verb: "list", Resource: "configmaps"},
		},
		"list anywhere": {
			http.MethodGet, "/apis/benchmarks.trueup.dev/v1/widgets", traffic.Request{Verb: "list", Resource: "widgets"},
		},
		"watch": {
			http.MethodGet, "/apis/benchmarks.trueup.dev/v1/widgets?watch=true",
			traffic.Request{Verb: "watch", Resource: "widgets"},
		},
		"no watch": {
			http.MethodGet, "/apis/benchmarks.trueup.dev/v1/widgets?watch=false",
			traffic.Request{Verb: "list", Resource: "widgets"},
		},
		"create": {
			http.MethodPost, "/api/v1/namespaces/n/configmaps", traffic.Request{Verb: "create", Resource: "configmaps"},
		},
		"update": {
			http.MethodPut, "/api/v1/namespaces/n/configmaps/c", traffic.Request{Verb: "update", Resource: "configmaps"},
		},
		"update status": {
			http.MethodPut, "/apis/benchmarks.trueup.dev/v1/namespaces/n/widgets/w/status",
			traffic.Request{Verb: "update", Resource: "widgets/status"},
		},
		"patch": {
			http.MethodPatch, "/api/v1/namespaces/n/events/e", traffic.Request{Verb: "patch", Resource: "events"},
		},
		"delete":    {http.MethodDelete, "/api/v1/nodes/n", traffic.Request{Verb: "delete", Resource: "nodes"}},
		"namespace": {http.MethodGet, "/api/v1/namespaces/n", traffic.Request{Verb: "get", Resource: "namespaces"}},
		"finalize": {
			http.MethodPut, "/api/v1/namespaces/n/finalize", traffic.Request{Verb: "update", Resource: "namespaces/finalize"},
		},
		"core discovery": {http.MethodGet, "/api/v1", traffic.Request{}},
		"discovery":      {http.MethodGet, "/apis/benchmarks.trueup.dev/v1", traffic.Request{}},
		"version":        {http.MethodGet, "/version", traffic.Request{}},
		"other method":   {http.MethodOptions, "/api/v1/nodes/n", traffic.Request{}},
	} {
		t.Run(name, func(t *testing.T) {
			counter := traffic.Counter{}
			send(t, counter.Wrap(answer(http.StatusOK, nil)), test.method, test.path)
			want := map[traffic.Request]int{test.want: 1}
			if test.want == (traffic.Request{}) {
				want = nil
			}
			if diff := cmp.Diff(want, counter.Counts().Requests); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCounter_Refused(t *testing.T) {
	counter := traffic.Counter{}
	for _, transport := range []http.RoundTripper{
		answer(http.StatusConflict, nil), answer(http.StatusCreated, nil), answer(http.StatusInternalServerError, nil),
		answer(0, errors.New("reset")),
	} {
		send(t, counter.Wrap(transport), http.MethodPost, "/api/v1/namespaces/n/configmaps")
	}
	send(t, counter.Wrap(answer(http.StatusConflict, nil)), http.MethodPost, "/api/v1/namespaces/n/events")
	send(t, counter.Wrap(answer(http.StatusOK, nil)), http.MethodGet, "/api/v1/namespaces/n/configmaps")

	create, event := traffic.Request{
		Verb: "create", Resource: "configmaps",
	}, traffic.Request{Verb: "create", Resource: "events"}
	counts := counter.Counts()
	if diff := cmp.Diff(map[traffic.Request]int{create: 1, event: 1}, counts.Refused); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
	if counts.Writes() != 4 || counts.Conflicts() != 1 {
		t.Errorf("writes %d and conflicts %d, want 4 and 1, without reads and events", counts.Writes(), counts.Conflicts())
	}
}

func TestCounter_Activity(t *testing.T) {
	counter := traffic.Counter{}
	// The server reads the counter while a request is open.
	look := func(path string) (all, objects traffic.Activity) {
		send(t, counter.Wrap(roundTripper(func(*http.Request) (*http.Response, error) {
			all, objects = counter.Activity(true), counter.Activity(false)
			return nil, errors.New("no answer")
		})), http.MethodGet, path)
		return all, objects
	}
	for _, test := range []struct {
		path         string
		all, objects traffic.Activity
	}{
		{"/api/v1/namespaces/n/configmaps", traffic.Activity{Begun: 1, Open: 1}, traffic.Activity{Begun: 1, Open: 1}},
		{"/api/v1/namespaces/n/events", traffic.Activity{Begun: 2, Open: 1}, traffic.Activity{Begun: 1, Open: 0}},
		{"/api/v1/namespaces/n/configmaps?watch=1", traffic.Activity{Begun: 2, Open: 0}, traffic.Activity{Begun: 1, Open: 0}},
	} {
		all, objects := look(test.path)
		if diff := cmp.Diff([]traffic.Activity{test.all, test.objects}, []traffic.Activity{all, objects}); diff != "" {
			t.Errorf("activity during %s (-want +got):\n%s", test.path, diff)
		}
	}
}

func TestCounter_Concurrency(t *testing.T) {
	counter := traffic.Counter{}
	transport := counter.Wrap(answer(http.StatusOK, nil))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				send(t, transport, http.MethodPut, "/api/v1/namespaces/n/configmaps/c")
				counter.Counts()
			}
		})
	}
	wg.Wait()
	if got := counter.Counts().Writes(); got != 800 {
		t.Errorf("%d writes, want 800", got)
	}
	if diff := cmp.Diff(traffic.Activity{Begun: 800}, counter.Activity(true)); diff != "" {
		t.Errorf("activity at the end (-want +got):\n%s", diff)
	}
}
