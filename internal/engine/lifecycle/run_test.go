// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// objects is a cache that syncs when the test closes a channel.
type objects struct {
	cache.Cache
	filled, stopped chan struct{}
}

func (o *objects) GetCache() cache.Cache { return o }

func (o *objects) Start(ctx context.Context) error {
	<-ctx.Done()
	close(o.stopped)
	return nil
}

func (o *objects) WaitForCacheSync(context.Context) bool {
	<-o.filled
	return true
}

func newManager(t *testing.T) (manager.Manager, *objects) {
	t.Helper()
	mgr, err := manager.New(&rest.Config{Host: "http://nowhere.invalid"}, manager.Options{
		Metrics:        metricsserver.Options{BindAddress: "0"},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return meta.MultiRESTMapper{}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	o := &objects{filled: make(chan struct{}), stopped: make(chan struct{})}
	if err := mgr.Add(o); err != nil {
		t.Fatal(err)
	}
	return mgr, o
}

func names() []string { return []string{"a", "b"} }

func TestRunEndsWithItsContext(t *testing.T) {
	mgr, o := newManager(t)
	close(o.filled)
	ctx, stop := context.WithCancel(t.Context())
	if err := mgr.Add(manager.RunnableFunc(func(running context.Context) error {
		stop()
		<-running.Done()
		return nil
	})); err != nil {
		t.Fatal(err)
	}
	if err := Run(ctx, mgr, names); err != nil {
		t.Errorf("Run returned %v", err)
	}
	<-o.stopped
}

func TestRunReturnsFailures(t *testing.T) {
	mgr, o := newManager(t)
	close(o.filled)
	failure := errors.New("on purpose")
	if err := mgr.Add(manager.RunnableFunc(func(context.Context) error { return failure })); err != nil {
		t.Fatal(err)
	}
	if err := Run(t.Context(), mgr, names); !errors.Is(err, failure) {
		t.Errorf("Run returned %v", err)
	}
}

// A manager that was given up still ends if the caches sync later.
func TestRunGivesUpOnCaches(t *testing.T) {
	mgr, o := newManager(t)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := Run(ctx, mgr, names); err == nil || !strings.HasSuffix(err.Error(), ": a, b") {
		t.Errorf("Run returned %v", err)
	}
	select {
	case <-o.stopped:
		t.Error("the cache was stopped while Start waits for it, so Start spins")
	default:
	}
	close(o.filled)
	select {
	case <-o.stopped:
	case <-time.After(time.Minute):
		t.Error("the manager keeps running")
	}
}
