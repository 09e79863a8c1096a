// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"trueup.dev/cmd/trueup/internal/traffic"
	"trueup.dev/console"
	"trueup.dev/examples/website"
	"trueup.dev/examples/website/dns"
)

// gracePeriod is how long running reconciles may take to end.
const gracePeriod = 2 * time.Second

// running is the running controller and its measurements.
type running struct {
	traffic  *traffic.Counter
	failures *failures
	ended    context.Context // done when the manager has returned; the cause is its error
	cancel   context.CancelFunc
	earlier  int    // reconciles in this process before this controller
	console  string // the URL of its console
}

// start starts a manager with the controller. It does not stop with a context, because the controller is still needed
// to delete sites at the end.
func start(cfg *rest.Config, scheme *runtime.Scheme, namespaces []string, records string, o Options) (*running, error) {
	r := &running{traffic: &traffic.Counter{}, failures: &failures{next: handler(o)}, earlier: reconciles()}
	logger := logr.FromSlogHandler(r.failures)
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(r.traffic.Wrap)
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:  scheme,
		Logger:  logger,
		Metrics: metricsserver.Options{BindAddress: "0"},
		Cache:   cache.Options{DefaultNamespaces: only(namespaces)},
		// a process may run the demo more than once
		Controller:              config.Controller{SkipNameValidation: new(true)},
		GracefulShutdownTimeout: new(gracePeriod),
	})
	if err != nil {
		return nil, err
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	if err := console.AddToManager(mgr, console.Options{Address: address}); err != nil {
		return nil, err
	}
	r.console = "http://" + address + "/console/"
	ctx, cancel := context.WithCancel(context.Background())
	if err := website.SetupWithManager(ctx, mgr, website.Options{Records: dns.NewDirectory(records)}); err != nil {
		cancel()
		return nil, err
	}
	ended, end := context.WithCancelCause(context.Background())
	r.ended, r.cancel = ended, cancel
	go func() { end(mgr.Start(ctx)) }()
	return r, nil
}

// freeAddress returns an address of this machine with a free port.
func freeAddress() (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String(), nil
}

// handler returns the handler of logs, which discards them if they are not requested.
func handler(o Options) slog.Handler {
	if o.Verbosity == 0 {
		return slog.DiscardHandler
	}
	return slog.NewTextHandler(o.Log, nil)
}

// only returns the namespaces of a cache. Without namespaces the cache watches all of them.
func only(namespaces []string) map[string]cache.Config {
	if len(namespaces) == 0 {
		return nil
	}
	chosen := map[string]cache.Config{}
	for _, name := range namespaces {
		chosen[name] = cache.Config{}
	}
	return chosen
}

// stop returns when the controller has ended. It also returns soon if the controller cannot end because the API no
// longer responds.
func (r *running) stop() {
	r.cancel()
	select {
	case <-r.ended.Done():
	case <-time.After(2 * gracePeriod):
	}
}

// end returns why the controller has ended.
func (r *running) end() error {
	if cause := context.Cause(r.ended); !errors.Is(cause, context.Canceled) {
		return fmt.Errorf("the controller has ended: %w", cause)
	}
	return errors.New("the controller has ended")
}

// reconciles returns the number of reconciles of this controller.
func (r *running) reconciles() int { return reconciles() - r.earlier }

func reconciles() int {
	families, err := metrics.Registry.Gather()
	if err != nil {
		return 0 // the collector is not ours; the number is only part of a summary
	}
	total := 0.0
	for _, family := range families {
		if family.GetName() == "controller_runtime_reconcile_total" {
			for _, metric := range family.GetMetric() {
				total += metric.GetCounter().GetValue()
			}
		}
	}
	return int(total)
}

// explain adds the errors that the controller reported to err.
func (r *running) explain(err error) error {
	times, last := r.failures.seen()
	switch {
	case times == 0:
		return err
	case err == nil:
		return fmt.Errorf("the controller reported %s; the last: %w", count(times, "error"), last)
	default:
		return fmt.Errorf("%w (the controller reported %s; the last: %w)", err, count(times, "error"), last)
	}
}
