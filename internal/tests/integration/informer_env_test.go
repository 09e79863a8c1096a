// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"trueup.dev/informer"
	"trueup.dev/reconcilers"
	"trueup.dev/resource"
)

var configMaps = resource.Kind{Schema: resource.NewSimpleSchema("", "v1", &corev1.ConfigMap{}, &corev1.ConfigMapList{})}

// supply makes the informer of ConfigMaps, in the namespace of the test unless the options set another one.
func (e *env) supply(
	supplier informer.Supplier, mgr cluster.Cluster, options informer.Options,
) informer.Informer {
	e.Helper()
	if options.Namespaces == nil {
		options.Namespaces = []string{e.Namespace}
	}
	informer, err := supplier(configMaps, mgr, options)
	e.Must(err)
	return informer
}

func over(store informer.Store) informer.Supplier {
	return informer.CustomCacheSupplier(func(resource.Kind) (informer.Store, error) { return store, nil })
}

// inView is a setup with an informer of ConfigMaps in place of the manager's cache.
func (e *env) inView(supplier informer.Supplier, setup setup) setup {
	return func(ctx context.Context, mgr ctrl.Manager, _ reconcilers.Config) error {
		view, err := informer.View(mgr, "configmaps", e.supply(supplier, mgr, informer.Options{}))
		e.Must(err)
		return setup(ctx, view, reconcilers.NewConfig(view, nil, time.Hour))
	}
}

// calls is a watcher that records its calls.
type calls struct {
	mu    sync.Mutex
	lines []string
	// fail returns the error of a call.
	fail func(line string) error
}

func (c *calls) Add(_ context.Context, object resource.Object) error {
	return c.note("add %s %s", object.GetName(), valueOf(object))
}

func (c *calls) Update(_ context.Context, previous, object resource.Object) error {
	return c.note("update %s %s>%s", object.GetName(), valueOf(previous), valueOf(object))
}

func (c *calls) Delete(_ context.Context, object resource.Object) error {
	return c.note("delete %s %s", object.GetName(), valueOf(object))
}

func valueOf(object resource.Object) string {
	if cm, ok := object.(*corev1.ConfigMap); ok {
		return cm.Data["value"]
	}
	return fmt.Sprintf("%T", object)
}

func (c *calls) note(format string, args ...any) error {
	line := fmt.Sprintf(format, args...)
	c.mu.Lock()
	defer c.mu.Unlock()
	if strings.Contains(line, "kube-root-ca.crt") {
		return nil
	}
	c.lines = append(c.lines, line)
	if c.fail != nil {
		return c.fail(line)
	}
	return nil
}

func (c *calls) made() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.lines)
}

// until waits until all these calls were made, in any order.
func (c *calls) until(e *env, lines ...string) {
	e.Helper()
	e.Eventually(func() error {
		made := c.made()
		for _, line := range lines {
			if !slices.Contains(made, line) {
				return fmt.Errorf("no call %q, got %q", line, made)
			}
		}
		return nil
	})
}

// connection is the connection to the API server. When it is cut, watches end and cannot be resumed: clients must list
// again.
type connection struct {
	mu   sync.Mutex
	cut  bool
	ends []func()
	// refused counts the requests since then.
	refused int
}

func (l *connection) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		query := request.URL.Query()
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.cut {
			l.refused++
		}
		switch watches := query.Get("watch") == "true"; {
		case l.cut && watches && query.Get("sendInitialEvents") == "":
			return expired(request), nil
		case l.cut:
			return nil, errors.New("the connection is cut")
		case !watches:
			return next.RoundTrip(request)
		}
		response, err := next.RoundTrip(request)
		if err == nil {
			l.ends = append(l.ends, func() { response.Body.Close() })
		}
		return response, err
	})
}

func (l *connection) disconnect() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
	for _, end := range l.ends {
		end()
	}
	l.ends = nil
}

// reconnect waits until every client must list again.
func (l *connection) reconnect(e *env) {
	e.Helper()
	e.Eventually(func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.refused == 0 {
			return errors.New("no request since the cut")
		}
		l.cut, l.refused = false, 0
		return nil
	})
}

func expired(request *http.Request) *http.Response {
	status, _ := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Code: http.StatusGone, Reason: metav1.StatusReasonExpired, Message: "too old",
	})
	return &http.Response{
		StatusCode: http.StatusGone, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: request,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(status)),
	}
}

// overConnection returns the cluster for informers with their own connection.
func (e *env) overConnection(l *connection) cluster.Cluster {
	e.Helper()
	cfg := e.RESTConfig()
	cfg.Wrap(l.wrap)
	behind, err := cluster.New(cfg, func(o *cluster.Options) { o.Scheme = e.Scheme() })
	e.Must(err)
	return behind
}
