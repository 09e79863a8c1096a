// SPDX-License-Identifier: Apache-2.0

// Package lease fences the writes of a process that no longer holds the lease of its manager.
//
// A leader that is paused for longer than its lease, for example because its machine is suspended, is replaced without
// knowing it. When it continues, its manager tries to renew the lease until the renew deadline before it stops, and its
// workers would reconcile beside the new leader meanwhile. In the same way, a reconcile that does not stop in time
// continues after its manager has released the lease.
//
// A [Lease] knows when the manager last renewed the lease. It refuses when a candidate may have taken the lease, which
// is the lease duration after the last successful renewal began: candidates measure the same duration from when they
// observe that renewal, which is later. The API server does not take part. Therefore, a write that has passed the check
// when the process is paused is sent when the process continues.
package lease

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"trueup.dev/internal/ctrlfields"
)

// Lease is the lease of the leader election of a manager. Its methods are safe for concurrent use. A nil Lease never
// refuses.
type Lease struct {
	name string
	log  logr.Logger
	// last is the last term, or nil before the process has been elected.
	last atomic.Pointer[term]
}

// term is the time between two writes of the lease.
type term struct {
	// renewed is when the write began that renewed the lease.
	renewed time.Time
	// duration is how long candidates wait after the renewal. Without a duration, the term does not expire.
	duration time.Duration
	released bool
	// refused reports whether something was refused, which is logged once.
	refused atomic.Bool
}

// Of returns the lease of a manager: the same for each call. It is nil if the manager has no leader election, or had
// started before the first call.
func Of(mgr manager.Manager) *Lease {
	current := ctrlfields.WrapLock(mgr, func(current resourcelock.Interface) resourcelock.Interface {
		if _, wrapped := current.(*lock); wrapped {
			return current
		}
		wrapped, _ := Wrap(current, mgr.GetLogger())
		return wrapped
	})
	if l, ok := current.(*lock); ok {
		return l.lease
	}
	return nil
}

// Wrap returns a lock that notes in the returned lease what the leader election writes to another lock.
func Wrap(current resourcelock.Interface, log logr.Logger) (resourcelock.Interface, *Lease) {
	l := &Lease{name: current.Describe(), log: log}
	return &lock{current, l}, l
}

// Check returns an error if the process has held the lease, and another process may hold it at the given time. Before
// the process is elected, only controllers run that need no leader election, and Check returns nil.
func (l *Lease) Check(now time.Time) error {
	if l == nil {
		return nil
	}
	t := l.last.Load()
	if t == nil {
		return nil
	}
	var err error
	switch since := elapsed(t.renewed, now); {
	case t.released:
		err = fmt.Errorf("the lease %s is released: another replica may be the leader", l.name)
	case t.duration > 0 && since >= t.duration:
		err = fmt.Errorf("the lease %s was renewed %s ago and has expired: another replica may be the leader",
			l.name, since.Round(time.Millisecond))
	default:
		return nil
	}
	if t.refused.CompareAndSwap(false, true) {
		l.log.Info("refusing to reconcile and to write", "reason", err.Error())
	}
	return err
}

// elapsed returns the time between two times by the clock that has advanced further: the monotonic clock stops while
// the machine is suspended, and the wall clock can be set.
func elapsed(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}

// lock notes what the leader election writes.
type lock struct {
	resourcelock.Interface
	lease *Lease
}

func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Create)
}

func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Update)
}

func (l *lock) write(
	ctx context.Context, record resourcelock.LeaderElectionRecord,
	write func(context.Context, resourcelock.LeaderElectionRecord) error,
) error {
	began := time.Now()
	held := record.HolderIdentity == l.Identity()
	if !held { // others may have the lease from now on, even if the response is lost
		l.lease.last.Store(&term{released: true})
	}
	err := write(ctx, record)
	if err == nil && held {
		duration := time.Duration(record.LeaseDurationSeconds) * time.Second
		l.lease.last.Store(&term{renewed: began, duration: duration})
	}
	return err
}
