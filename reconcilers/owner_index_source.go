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
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"trueup.dev/internal/engine/lifecycle"
	"trueup.dev/observe"
)

// ownerIndexSource registers an owner index when its controller starts, before the workers start. It is a source
// because a controller waits for its sources. It delivers no events.
type ownerIndexSource struct {
	indexes *ownerIndexes
	index   ownerIndex
	object  client.Object
	log     logr.Logger
}

var (
	_ source.SyncingSource = (*ownerIndexSource)(nil)
	_ fmt.Stringer         = (*ownerIndexSource)(nil)
)

func (s *ownerIndexSource) String() string {
	return fmt.Sprintf("index of %s by owner", s.index.kind.Kind)
}

// Start does nothing. It must not block.
func (s *ownerIndexSource) Start(context.Context, workqueue.TypedRateLimitingInterface[Request]) error {
	return nil
}

// WaitForSync registers the index. It retries while the API server is unavailable or does not serve the kind. It stops
// shortly before the deadline of ctx: all sources share the deadline, and the other sources do not report the cause.
func (s *ownerIndexSource) WaitForSync(ctx context.Context) error {
	limited := ctx
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		limited, cancel = context.WithDeadline(ctx, deadline.Add(-time.Until(deadline)/10))
		defer cancel()
	}
	err := lifecycle.Retry(limited, func(context.Context) error {
		return s.indexes.register(ctx, s.index, s.object)
	}, func(err error, failures int) bool {
		if !isTemporary(err) {
			return false
		}
		hubOr(s.indexes.hub).Report(ctx, &observe.AttemptFailed{
			Attempt: observe.IndexOwners, Kind: s.index.kind.GroupKind(), Err: err,
		})
		if failures == 1 {
			s.log.Info("unable to index children by owner yet, trying again", "kind", s.index.kind.Kind, "reason", err.Error())
		}
		return true
	})
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil
	}
	return err
}

// isTemporary reports whether an error may disappear when the API server is available or serves the kind.
func isTemporary(err error) bool {
	var (
		sent    *url.Error
		network net.Error
		status  apierrs.APIStatus
	)
	return meta.IsNoMatchError(err) || errors.As(err, &sent) || errors.As(err, &network) || errors.As(err, &status)
}
