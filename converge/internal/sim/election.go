// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/world"
)

// Election describes the leader election of a process.
type Election struct {
	Lock resourcelock.Interface
	// LeaseDuration, RenewDeadline and RetryPeriod have the meaning that they have in client-go.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
}

// election is the leader election of a process. It makes the requests of client-go's, in the same order, with three
// differences. Attempts to acquire the lease have no jitter: equal schedules must lead to equal runs. A process that
// sees that another one holds the lease ends at once, as with client-go at the renew deadline at the latest. The time
// between two renewals counts from the start of the first one.
type election struct {
	Election

	process *Process
	// elected is closed when the process has acquired the lease.
	elected chan struct{}
	// holds is set while the process holds the lease.
	holds bool
	// began is when the last renewal began, and renewed is when the last one succeeded.
	began, renewed time.Time
	// observed is the last record that the API server has returned, raw is the same as it was returned, and since is when
	// it was first seen.
	observed resourcelock.LeaderElectionRecord
	raw      []byte
	since    time.Time
}

func newElection(p *Process, e Election) *election {
	return &election{Election: e, process: p, elected: make(chan struct{})}
}

type electionKey struct{}

// whoElection is the name of the calls of leader elections.
const whoElection = "leader election"

// elects reports whether a leader election makes a call.
func elects(ctx context.Context) bool { return ctx.Value(electionKey{}) != nil }

// Elected returns a channel that is closed when the process has acquired its lease, or has none.
func (m *processManager) Elected() <-chan struct{} {
	if m.process.election != nil {
		return m.process.election.elected
	}
	return m.Manager.Elected()
}

// WrapLock replaces the lock of the leader election, see ctrlfields.WrapLock.
func (m *processManager) WrapLock(wrap func(resourcelock.Interface) resourcelock.Interface) resourcelock.Interface {
	e := m.process.election
	if e == nil {
		return nil
	}
	if !m.cache.started {
		e.Lock = wrap(e.Lock)
	}
	return e.Lock
}

// admits waits until a runnable may start, and reports false if the process ends first.
func (e *election) admits(runnable ctrlmanager.Runnable) bool {
	if e == nil {
		return true
	}
	if r, ok := runnable.(ctrlmanager.LeaderElectionRunnable); ok && !r.NeedLeaderElection() {
		return true
	}
	select {
	case <-e.elected:
		return true
	case <-e.process.ctx.Done():
		return false
	}
}

// Identity identifies a process, for its leader election.
func (p *Process) Identity() string { return p.program.Client + "_" + strconv.Itoa(p.number) }

// run acquires the lease, and renews it until the process ends.
func (e *election) run() {
	ctx := context.WithValue(e.process.ctx, electionKey{}, true)
	for !e.attempt(ctx) {
		e.await(ctx, e.RetryPeriod, e.isHeld)
	}
	e.renewed = time.Now()
	close(e.elected)
	// The request that has acquired the lease may have taken long: it is renewed at once.
	e.renew(ctx)
	e.await(ctx, startTime, nil) // controllers start
	for {
		e.await(ctx, e.RetryPeriod-time.Since(e.began), e.isValid)
		e.renew(ctx)
	}
}

// renew renews the lease. The process ends if it has lost the lease.
func (e *election) renew(ctx context.Context) {
	e.began = time.Now()
	switch p := e.process; {
	case e.attempt(ctx):
		e.renewed = time.Now()
	case !e.holds || time.Since(e.renewed) >= e.RenewDeadline:
		e.call(ctx, "lose the lease", func() {
			p.trace.Note(p.program.who(), "ends: it no longer holds its Lease")
			p.die()
		})
	}
}

// isHeld reports whether another process holds the lease, and can renew it: it is not to be had.
func (e *election) isHeld() bool {
	return slices.ContainsFunc(*e.process.processes, func(p *Process) bool {
		of := p.election
		return of != nil && of != e && of.holds && !p.paused && !p.dead.Load() && of.Lock.Describe() == e.Lock.Describe()
	})
}

// isValid reports whether the API server has a lease of the process that has not expired: the renewal is not urgent.
func (e *election) isValid() bool {
	namespace, name, _ := strings.Cut(e.Lock.Describe(), "/")
	stored, ok := e.process.world.Server.Get(
		coordinationv1.SchemeGroupVersion.WithKind("Lease"), types.NamespacedName{Namespace: namespace, Name: name},
	).(*coordinationv1.Lease)
	return ok && stored.Spec.HolderIdentity != nil && *stored.Spec.HolderIdentity == e.Lock.Identity() &&
		stored.Spec.RenewTime != nil && time.Since(stored.Spec.RenewTime.Time) < e.LeaseDuration
}

// await waits for some time. A Settle waits, too, unless idle is set and returns true.
func (e *election) await(ctx context.Context, d time.Duration, idle func() bool) {
	passed := make(chan struct{})
	// A pause does not stop the clock.
	until := deferredAction{at: time.Now().Add(d), do: func() { close(passed) }, idle: idle}
	e.call(ctx, "wait", func() { e.process.scheduler.deferred = append(e.process.scheduler.deferred, until) })
	select {
	case <-passed:
	case <-ctx.Done():
	}
}

// call does something in the goroutine of the run.
func (e *election) call(ctx context.Context, act string, do func()) {
	_ = e.process.submit(ctx, &call{Call: world.Call{Site: inject.Site{Act: act}}, begin: do})
}

// attempt acquires or renews the lease, and reports whether the process has it.
func (e *election) attempt(ctx context.Context) bool {
	now := metav1.Now()
	next := resourcelock.LeaderElectionRecord{
		HolderIdentity: e.Lock.Identity(), LeaseDurationSeconds: int(e.LeaseDuration / time.Second),
		AcquireTime: now, RenewTime: now,
	}
	if e.holds && now.Sub(e.since) < e.LeaseDuration {
		next.AcquireTime, next.LeaderTransitions = e.observed.AcquireTime, e.observed.LeaderTransitions
		if e.Lock.Update(ctx, next) == nil {
			e.acquired(next)
			return true
		}
	}
	old, raw, err := e.Lock.Get(ctx)
	switch {
	case apierrs.IsNotFound(err):
		if e.Lock.Create(ctx, next) != nil {
			return false
		}
		e.acquired(next)
		return true
	case err != nil:
		return false
	}
	if !bytes.Equal(raw, e.raw) {
		e.observed, e.raw, e.since = *old, raw, now.Time
	}
	e.holds = e.holds && old.HolderIdentity == next.HolderIdentity
	valid := now.Sub(e.since) < time.Duration(old.LeaseDurationSeconds)*time.Second
	switch {
	case old.HolderIdentity == next.HolderIdentity:
		next.AcquireTime, next.LeaderTransitions = old.AcquireTime, old.LeaderTransitions
	case old.HolderIdentity != "" && valid:
		return false
	default:
		next.LeaderTransitions = old.LeaderTransitions + 1
	}
	if e.Lock.Update(ctx, next) != nil {
		return false
	}
	e.acquired(next)
	return true
}

// acquired records that the process holds the lease.
func (e *election) acquired(record resourcelock.LeaderElectionRecord) {
	e.observed, e.raw, e.since, e.holds = record, nil, time.Now(), true
}
