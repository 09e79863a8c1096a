// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// violate notes a violation. The first one ends the run: what comes after it comes of it.
func (r *run) violate(v Violation) {
	if _, off := r.plan.Off[v.Oracle]; off {
		r.stopped = r.stopped || v.Oracle == OracleQuiescence
		return
	}
	r.violations = append(r.violations, v)
	r.log.violation(r, v)
}

func (r *run) failed() bool { return len(r.violations) > 0 || r.stopped }

// settle waits until all is quiet, and has the oracles look.
func (r *run) settle() {
	r.log.user(r, Settle(), nil)
	r.recent, r.quietAt = 0, time.Now()
	clear(r.waited)
	r.work(time.Time{})
	if r.failed() {
		return
	}
	if r.disturb() {
		r.work(time.Time{})
	}
	r.outwait()
	if r.failed() {
		return
	}
	s := r.snapshot()
	r.checkState(s)
	if !r.failed() {
		r.checkGone(s)
	}
	if !r.failed() {
		r.checkObserved()
	}
	if !r.failed() {
		r.checkStay()
	}
	if !r.failed() {
		r.checkShared()
	}
	r.requested = nil
	clear(r.unsettled)
	r.settled = append(r.settled, s)
	r.settledAt = append(r.settledAt, r.step)
}

// outwait lets time pass for those who look again and again, reconcilers and others that were started: what they do
// once some time has passed gets done.
func (r *run) outwait() {
	for range maxWaits {
		// The queues of controllers may have what handlers have put off.
		if r.failed() || len(r.process.queue.items) == 0 && r.process.manager == nil {
			return
		}
		changes := r.changes
		time.Sleep(stayTime)
		r.recent, r.quietAt = 0, time.Now()
		r.work(time.Time{})
		if r.changes == changes {
			return
		}
	}
}

// maxWaits is how often it may take another minute until nothing happens any more.
const maxWaits = 5

// checkResult looks at how a reconcile has ended.
func (r *run) checkResult(a *activity) {
	name := nameOf(a.NamespacedName)
	switch {
	case a.panicked != nil:
		r.violate(Violation{
			Oracle:  OracleErrors,
			Cause:   CausePanic,
			About:   name,
			Message: fmt.Sprintf("the reconcile of %s panics: %v", name, a.panicked),
			Details: userFrames(a.stack),
		})
	case isTerminal(a.err) && transient(a.err):
		r.violate(Violation{
			Oracle: OracleErrors, Cause: CauseTerminalError, About: name,
			Message: fmt.Sprintf("the reconcile of %s returns a terminal error for a temporary one: %v", name, a.err),
		})
	}
	r.lastResult = a
}

func isTerminal(err error) bool { return errors.Is(err, reconcile.TerminalError(nil)) }

// transient is true for errors that another attempt may not meet.
func transient(err error) bool {
	return apierrs.IsConflict(err) || apierrs.IsTimeout(err) || apierrs.IsServerTimeout(err) ||
		apierrs.IsTooManyRequests(err) || apierrs.IsInternalError(err) ||
		errors.Is(err, context.DeadlineExceeded)
}

// restless tells that reconciles do not come to an end.
func (r *run) restless(long string) Violation {
	v := Violation{Oracle: OracleQuiescence, Cause: CauseNotQuiet, Message: "did not converge " + long}
	if a := r.lastResult; a != nil {
		v.About = nameOf(a.NamespacedName)
		switch {
		case a.err != nil:
			v.Message += ", " + v.About + " fails: " + a.err.Error()
		case r.lastEffect != "":
			v.Message += ", the last effect: " + r.lastEffect
		}
	}
	if len(r.process.active) > 0 && time.Since(r.quietAt) > r.plan.Patience {
		v.Cause = CauseHangs
		v.Message = "the reconcile of " + nameOf(r.process.active[0].NamespacedName) + " does not return"
	}
	return v
}

// sortedKeys returns the keys of a map in their order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
