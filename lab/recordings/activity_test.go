// SPDX-License-Identifier: Apache-2.0

package recordings

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"trueup.dev/observe"
)

// activity is a listener that knows when the reconciles of each namespace have ended, and which loops were found.
type activity struct {
	mu      sync.Mutex
	running map[string]int
	last    map[string]time.Time
	loops   []string
	looping map[string]bool
}

func newActivity() *activity {
	return &activity{running: map[string]int{}, last: map[string]time.Time{}, looping: map[string]bool{}}
}

// Observe implements [observe.Listener].
func (a *activity) Observe(ctx context.Context, event observe.Event) context.Context {
	switch e := event.(type) {
	case *observe.ReconcileStarted:
		a.note(e.Run.Object.Namespace, 1)
	case *observe.LoopFound:
		a.mu.Lock()
		defer a.mu.Unlock()
		a.loops = append(a.loops, strings.Join(e.Repeats, "; "))
		a.looping[e.Run.Object.Namespace] = true
	case *observe.ReconcileFinished:
		a.note(e.Run.Object.Namespace, -1)
	}
	return ctx
}

// note notes that a reconcile or a step starts, with 1, or ends, with -1.
func (a *activity) note(namespace string, n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.running[namespace] += n
	a.last[namespace] = time.Now()
}

// found returns the loops that were found.
func (a *activity) found() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.loops)
}

// quiet reports whether nothing has happened in a namespace for some time, or only a loop that was found.
func (a *activity) quiet(namespace string, atLeast time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.looping[namespace] || a.running[namespace] == 0 && time.Since(a.last[namespace]) >= atLeast
}
