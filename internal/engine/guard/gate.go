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

// DefaultTimeout is the maximum time that a request is deferred.
const DefaultTimeout = 10 * time.Second

const (
	// firstPoll and lastPoll are the limits of the time between two checks of a cache. Informers are usually behind by
	// milliseconds, and events of the caches wake most requests earlier.
	firstPoll = 5 * time.Millisecond
	lastPoll  = 500 * time.Millisecond

	// sweepInterval is the interval between searches for journals whose request never returned.
	sweepInterval = time.Minute
)

// Gate defers the requests of one controller until the caches have observed the earlier writes of those requests. The
// zero value is ready to use. Its methods are safe for concurrent use.
type Gate struct {
	// waiting is the number of journals, so that a check is cheap when there are none.
	waiting atomic.Int64

	mu       sync.Mutex
	journals map[reconcile.Request]*unseen
	swept    time.Time
}

// Enter returns how long to defer the request, or 0 if it may run with the given journal.
func (g *Gate) Enter(
	ctx context.Context, req reconcile.Request, journal *Journal, timeout time.Duration,
) time.Duration {
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
		after := min(firstPoll<<min(earlier.polls, 10), lastPoll, timeout-waited)
		earlier.polls++
		return after
	}
	g.forget(req)
	// A cache that exceeded the timeout is not waited for a second time.
	journal.live, journal.recordReads = earlier.uncertain || blocked, !blocked
	if journal.timedOut = blocked; blocked {
		if late.cluster.overdue(late) {
			journal.excluded = &Object{late.cluster, late.kind, late.key}
		}
		logr.FromContextOrDiscard(ctx).Info(
			"cache did not observe a write of this controller in time, reading from the API server once", "waited",
			waited.String(), "kind", late.kind.String(), "object", late.key.String(), "resourceVersion", late.version,
		)
	}
	return 0
}

// Leave keeps the journal of a request that has ended, if it is not empty.
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

// sweep removes journals that are so old that the caches must have observed their writes. Their requests did not
// return, in most cases because the resource no longer exists.
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
