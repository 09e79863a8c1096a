// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// requestLog records the requests of a client.
type requestLog struct {
	mu    sync.Mutex
	lines []string
}

func (l *requestLog) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lines = append(l.lines, req.Method+" "+req.URL.Path)
		return next.RoundTrip(req)
	})
}

func (l *requestLog) made() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// closedPort returns the address of a port that refuses connections.
func closedPort(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	wantErr(t, nil, err)
	wantErr(t, nil, listener.Close())
	return listener.Addr().String()
}

func TestSetup_NeedsNoAPIServer(t *testing.T) {
	var requests requestLog
	rest := &rest.Config{Host: "http://" + closedPort(t)}
	rest.Wrap(requests.wrap)
	scheme := fixture.NewScheme()
	mgr, err := ctrl.NewManager(rest, ctrl.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: "0"}, Controller: ctrlconfig.Controller{
			SkipNameValidation: new(true),
		},
	})
	wantErr(t, nil, err)
	remote, err := cluster.New(rest, func(o *cluster.Options) { o.Scheme = scheme })
	wantErr(t, nil, err)
	wantErr(t, nil, mgr.Add(remote))
	config := reconcilers.NewConfig(mgr, nil, time.Hour)
	there := config.WithCluster(remote)

	w := newWorld(t) // only the children need it, nothing reads from it
	untyped, untypedList := &unstructured.Unstructured{}, &unstructured.UnstructuredList{}
	untyped.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
	untypedList.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DeploymentList"})
	r := &resourceReconciler{
		Config: config,
		Setup: func(_ context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
			bldr.WithOptions(controller.Options{CacheSyncTimeout: 3 * time.Second})
			return nil
		},
		Reconciler: sequence{
			newChildReconciler(w, identifiedByName), newChildSetReconciler(w, identifiedByLabel, func(r *childSetReconciler) {
				r.ChildObjectManager = &configMaps{MergeBeforeUpdate: mergeData, TrackDesired: true}
			}),
			&reconcilers.ChildReconciler[*fixture.Resource, *unstructured.Unstructured, *unstructured.UnstructuredList]{
				ChildType: untyped, ChildListType: untypedList,
				DesiredChild: func(
					context.Context, *fixture.Resource,
				) (*unstructured.Unstructured, error) {
					return nil, nil
				},
				ReflectChildStatusOnParent: func(context.Context, *fixture.Resource, *unstructured.Unstructured, error) {},
				MergeBeforeUpdate:          func(_, _ *unstructured.Unstructured) {},
			},
			&withConfig{
				Config:     func(context.Context, reconcilers.Config) (reconcilers.Config, error) { return there, nil },
				Reconciler: newDeploymentReconciler(new("one")),
			},
			&syncReconciler{
				Sync: func(context.Context, *fixture.Resource) error { return nil },
				Setup: func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
					bldr.Watches(&corev1.Secret{}, reconcilers.EnqueueTracked(ctx))
					return nil
				},
			},
		},
	}
	wantErr(t, nil, r.SetupWithManager(t.Context(), mgr))
	aggregate := &reconcilers.AggregateReconciler[*fixture.Resource]{
		Config: config, Request: testRequest, MergeBeforeUpdate: func(_, _ *fixture.Resource) {},
		Reconciler: newChildReconciler(w, identifiedByName),
	}
	wantErr(t, nil, aggregate.SetupWithManager(t.Context(), mgr))
	equal(t, "requests of setup", nil, requests.made())

	failed := func() float64 {
		return apitest.Counted(t, "trueup_owner_index_failures_total", map[string]string{"kind": "ConfigMap"})
	}
	before := failed()
	err = mgr.Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "connection refused") || !strings.Contains(err.Error(), " by owner") {
		t.Errorf("error of Start: %v\nwant the name of the index and the cause", err)
	}
	if failed() == before {
		t.Error("failed attempts were not counted")
	}
	if len(requests.made()) == 0 {
		t.Error("Start made no requests, so this test does not prove anything about setup")
	}
}
