// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"strings"
	"sync"
	"time"
	"weak"
)

// StuckAfter is the time after which a reconcile that has not ended is stuck.
const StuckAfter = time.Minute

// StuckFound means that a reconcile has been running for longer than [StuckAfter]. It occurs once in a run, between the
// events of the run.
type StuckFound struct {
	Run *Run
	// Path is the path of the step that has not ended. It is empty for controllers without steps.
	Path []string
}

func (*StuckFound) event() {}

// StuckReporter is called when a reconcile is stuck.
type StuckReporter interface {
	// ReportStuck is called in another goroutine while the reconcile continues, and never after its end. step is the path
	// of the step that has not ended, joined with dots.
	ReportStuck(run *Run, step string)
}

// WhenStuck sets what is called if the run of a context is stuck.
func WhenStuck(ctx context.Context, reporter StuckReporter) {
	if r := runningFrom(ctx); r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.stuck = reporter
	}
}

// watchdog finds the runs of a controller that are stuck. The zero value is ready to use. It has a timer while
// something runs, and no goroutine.
type watchdog struct {
	mu sync.Mutex
	// running holds the runs that have not ended, and whether they were reported.
	running map[*running]bool
	timer   *time.Timer
	armed   bool
}

func (w *watchdog) started(c *controllerObserver, r *running) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.timer == nil:
		w.running = map[*running]bool{}
		w.timer = time.AfterFunc(StuckAfter, checkOf(weak.Make(c)))
	case !w.armed:
		w.timer.Reset(StuckAfter)
	}
	w.armed = true
	w.running[r] = false
}

// checkOf returns the function of the timer, which must not keep the controller of a cluster that is gone.
func checkOf(pointer weak.Pointer[controllerObserver]) func() {
	return func() {
		if c := pointer.Value(); c != nil {
			c.watchdog.check(c)
		}
	}
}

// ended waits until a report about the run has ended.
func (w *watchdog) ended(r *running) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.running, r)
}

func (w *watchdog) check(c *controllerObserver) {
	w.mu.Lock()
	defer w.mu.Unlock()
	next := time.Duration(0)
	for r, reported := range w.running {
		left := StuckAfter - time.Since(r.Started)
		switch {
		case reported:
		case left <= 0:
			w.running[r] = true
			c.reportStuck(r)
		case next == 0 || left < next:
			next = left
		}
	}
	if w.armed = next > 0; w.armed {
		w.timer.Reset(next)
	}
}

func (c *controllerObserver) reportStuck(r *running) {
	r.mu.Lock()
	path, reporter := r.at, r.stuck
	r.mu.Unlock()
	at := strings.Join(path, ".")
	c.log.Info("The reconcile has been running for more than "+strings.TrimSuffix(StuckAfter.String(), "0s"),
		"namespace", r.Object.Namespace, "name", r.Object.Name, "reconcileID", r.ID, "step", at)
	if reporter != nil {
		reporter.ReportStuck(&r.Run, at)
	}
	c.hub.Observe(r, &StuckFound{Run: &r.Run, Path: path})
}
