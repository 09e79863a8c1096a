// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// DefaultTimeout is how long a request is put off at most.
const DefaultTimeout = 10 * time.Second

const (
	// firstPoll and lastPoll bound the time between two looks at a cache. Informers are behind by milliseconds; events of the caches wake most requests
	// anyway.
	firstPoll = 5 * time.Millisecond
	lastPoll  = 500 * time.Millisecond

	// sweepInterval is how often journals are looked for whose request has never come again.
	sweepInterval = time.Minute
)

// Gate puts off the requests of one controller until the caches have seen what those requests have written before. The zero value is ready to use. Its
// methods are safe for concurrent use.
type Gate struct {
	// waiting is the number of journals, so that a look is cheap when there are none.
	waiting atomic.Int64

	mu       sync.Mutex
	journals map[reconcile.Request]*unseen
	swept    time.Time
}

// Enter returns how long the request is to be put off, and 0 when it may go ahead, with journal as its journal. The controller's name is for metrics.
func (g *Gate) Enter(ctx context.Context, controller string, req reconcile.Request, journal *Journal, timeout time.Duration) time.Duration {
	if g.waiting.Load() == 0 {
		return 0
	}
	g.mu.Lock()
	earlier := g.journals[req]
	g.mu.Unlock()
	if earlier == nil {
		return 0
	}

	now := time.Now()
	if earlier.blocked.IsZero() {
		earlier.blocked = now
	}
	waited := now.Sub(earlier.blocked)
	late, blocked := earlier.settle(func(w write) bool { return w.observed(ctx, waited) })
	if blocked && waited < timeout {
		staleWaits.WithLabelValues(controller).Inc()
		after := min(firstPoll<<min(earlier.polls, 10), lastPoll, timeout-waited)
		earlier.polls++
		return after
	}
	g.forget(req)
	// A cache that is late anyway is not waited for a second time.
	journal.live, journal.remembers = earlier.doubt || blocked, !blocked
	if blocked {
		staleTimeouts.WithLabelValues(controller).Inc()
		late.cluster.overdue(late)
		logr.FromContextOrDiscard(ctx).Info("the cache has not seen a write of this controller in time, reading from the API server once",
			"waited", waited.String(), "kind", late.kind.String(), "object", late.key.String(), "resourceVersion", late.version)
	}
	return 0
}

// Leave keeps the journal of a request that has ended, if there is anything in it.
func (g *Gate) Leave(req reconcile.Request, journal *Journal) {
	kept := journal.keep()
	if kept == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.journals == nil {
		g.journals = map[reconcile.Request]*unseen{}
	}
	g.journals[req] = kept
	g.sweep(kept.since)
	g.waiting.Store(int64(len(g.journals)))
}

func (g *Gate) forget(req reconcile.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.journals, req)
	g.waiting.Store(int64(len(g.journals)))
}

// sweep forgets journals that are so old that caches must have seen everything. Their requests have not come again, most often because the resource is gone.
func (g *Gate) sweep(now time.Time) {
	if now.Sub(g.swept) < sweepInterval {
		return
	}
	g.swept = now
	for req, journal := range g.journals {
		if now.Sub(journal.since) > sweepInterval {
			delete(g.journals, req)
		}
	}
}
