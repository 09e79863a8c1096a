// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// A reconcile that does not stop in time does not write after its manager has released the lease, when another replica
// is the leader.
func TestNoWriteAfterTheLeaseIsReleased(t *testing.T) {
	e := newEnv(t)
	options := ctrl.Options{
		Scheme:                        e.Scheme(),
		Metrics:                       metricsserver.Options{BindAddress: "0"},
		Cache:                         cache.Options{DefaultNamespaces: map[string]cache.Config{e.Namespace: {}}},
		LeaderElection:                true,
		LeaderElectionID:              "released",
		LeaderElectionNamespace:       e.Namespace,
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       new(100 * time.Millisecond),
	}
	options.Controller.SkipNameValidation = new(true)
	mgr, err := ctrl.NewManager(e.RESTConfig(), options)
	e.Must(err)
	entered, proceed, refused := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	e.Must(root(&reconcilers.SyncReconciler[*fixture.Resource]{
		Sync: func(ctx context.Context, resource *fixture.Resource) error {
			config := reconcilers.RetrieveConfigOrDie(ctx)
			before := newConfigMap("before", nil)
			before.Namespace = resource.Namespace
			if err := config.Create(ctx, before); err != nil {
				return err
			}
			close(entered)
			<-proceed
			after := newConfigMap("after", nil)
			after.Namespace = resource.Namespace
			refused <- config.Create(context.WithoutCancel(ctx), after)
			return nil
		},
	})(t.Context(), mgr, reconcilers.NewConfig(mgr, nil, time.Hour)))

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	e.Add(newResource("it", nil))
	<-entered
	stop()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "grace period") {
		t.Errorf("the manager returned %v, want an error about its grace period", err)
	}
	close(proceed)
	want := fmt.Sprintf("the lease %s/released is released: another replica may be the leader", e.Namespace)
	if err := <-refused; err == nil || err.Error() != want {
		t.Errorf("the write returned %v, want %q", err, want)
	}
	if err := e.Read(newConfigMap("before", nil)); err != nil {
		t.Errorf("the object from before the release: %v", err)
	}
	if err := e.Read(newConfigMap("after", nil)); !apierrs.IsNotFound(err) {
		t.Errorf("the object from after the release: got %v, want NotFound", err)
	}
}
