// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"trueup.dev/internal/guard"
	"trueup.dev/internal/lifecycle"
)

var ownerIndexFailures = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "trueup_owner_index_failures_total",
	Help: "Failed attempts to index a kind of children by owner at the start of a controller. Each is tried again.",
}, []string{"kind"})

func init() {
	metrics.Registry.MustRegister(ownerIndexFailures)
}

// ownerIndexSource registers an owner index when its controller starts, before its workers. It is a source because
// those are what a controller waits for; it has no events.
type ownerIndexSource struct {
	index  *ownerIndex
	kind   guard.Form
	object client.Object
	log    logr.Logger
}

var (
	_ source.SyncingSource = (*ownerIndexSource)(nil)
	_ fmt.Stringer         = (*ownerIndexSource)(nil)
)

func (s *ownerIndexSource) String() string { return fmt.Sprintf("index of %s by owner", s.kind.Kind) }

// Start does nothing: it must not block.
func (s *ownerIndexSource) Start(context.Context, workqueue.TypedRateLimitingInterface[Request]) error {
	return nil
}

// WaitForSync registers the index. While the kind is not served, or the API server is away, it tries again. It gives up
// a moment before ctx is done: the other sources, which have the same time, do not say what they waited for.
func (s *ownerIndexSource) WaitForSync(ctx context.Context) error {
	limited := ctx
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		limited, cancel = context.WithDeadline(ctx, deadline.Add(-time.Until(deadline)/10))
		defer cancel()
	}
	err := lifecycle.Retry(limited, func(context.Context) error {
		return s.index.register(ctx, s.kind, s.object)
	}, func(err error, failures int) bool {
		if !mayPass(err) {
			return false
		}
		ownerIndexFailures.WithLabelValues(s.kind.Kind).Inc()
		if failures == 1 {
			s.log.Info("unable to index children by owner yet, trying again", "kind", s.kind.Kind, "reason", err.Error())
		}
		return true
	})
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil
	}
	return err
}

// mayPass reports whether an error goes when the API server comes, or serves a kind.
func mayPass(err error) bool {
	var (
		sent    *url.Error
		network net.Error
		status  apierrs.APIStatus
	)
	return meta.IsNoMatchError(err) || errors.As(err, &sent) || errors.As(err, &network) || errors.As(err, &status)
}
