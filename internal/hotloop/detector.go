// SPDX-License-Identifier: Apache-2.0

package hotloop

import (
	"sync"
	"sync/atomic"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/guard"
)

const (
	// Short is the shortest time until the next reconcile that is not taken for "at once". To look five times a second is
	// a poll.
	Short = 200 * time.Millisecond

	// Limit is how many reconciles in a row make a hot loop, if the whole controller made as many such within Window. No
	// resource that converges needs as many, and a loop that waits for something makes at most five a second.
	Limit = 100
	// Window is the time within which a controller must make Limit such reconciles.
	Window = 20 * time.Second

	// A reconcile that repeats what earlier ones have written counts repeated, and one that writes something new counts
	// fresh.
	repeated, fresh = 10, 1
	hotAt           = Limit * repeated
	inspectAt       = hotAt / 2

	// firstDelay and lastDelay bound the time for which a request is put off. It doubles each time.
	firstDelay, lastDelay = time.Second, time.Minute

	// pause is the time after which a row ends without a reconcile.
	pause = 5 * time.Minute
	// maxRows and maxWritten bound memory: the resources that are watched, and the objects that are remembered for each.
	maxRows, maxWritten = 10_000, 64
	sweepInterval       = time.Minute
)

// Detector finds the hot loops of one controller. The zero value is ready to use. Its methods are safe for concurrent
// use.
type Detector struct {
	// watched is the number of rows, so that a look is cheap when there are none.
	watched atomic.Int64

	mu    sync.Mutex
	rows  map[reconcile.Request]*row
	swept time.Time
	// recent are the times of the last reconciles that counted, of all resources; next is the place of the oldest.
	recent [Limit]time.Time
	next   int
}

// row is reconciles of one resource of which each was driven by the one before.
type row struct {
	points, reconciles int
	since, ended       time.Time
	generation         int64
	exists             bool
	// requeue is what the last reconcile asked for, and early is true when the next one came before that.
	requeue time.Duration
	early   bool
	// written are objects that were written in this row, and last those of the last reconcile.
	written map[guard.Object]bool
	last    map[guard.Object]guard.State
	// versions are what has been read and written, as far as requests were inspected.
	versions guard.Versions

	// hot is true from when the loop was found until it has ended.
	hot   bool
	delay time.Duration
	until time.Time
}

// Entry is the answer to a request that is about to be made.
type Entry struct {
	// Wait is how long the request is to be put off. 0 lets it pass.
	Wait time.Duration
	// Inspect is true when the journal of the request is to be inspected.
	Inspect bool
}

// Look is what the detector asks for about a request that it wants to put off.
type Look struct {
	// Generation is that of the resource after the last reconcile.
	Generation int64
	// Existed is true when the resource existed before the last reconcile.
	Existed bool
	// Versions are the objects that the last reconciles have read, and Ours those that the last one wrote.
	Versions guard.Versions
	Ours     func(guard.Object) bool
}

// Idle reports whether no resource has a row, so that there is nothing to ask Enter for.
func (d *Detector) Idle() bool { return d.watched.Load() == 0 }

// Enter is called for a request that is about to be made. changed reports whether other clients have changed something
// since the last reconcile; it is asked only about requests that would be put off.
func (d *Detector) Enter(req reconcile.Request, changed func(Look) bool) Entry {
	if d.Idle() {
		return Entry{}
	}
	now := time.Now()
	d.mu.Lock()
	r := d.rows[req]
	if r == nil {
		d.mu.Unlock()
		return Entry{}
	}
	if now.Before(r.ended.Add(r.requeue)) {
		r.early = true
	}
	wait, entry := r.until.Sub(now), Entry{Inspect: r.points >= inspectAt || r.hot}
	look := Look{Generation: r.generation, Existed: r.exists, Versions: r.versions, Ours: func(o guard.Object) bool {
		_, ok := r.last[o]
		return ok
	}}
	d.mu.Unlock()

	// The queue makes no two requests for one resource at a time, so nobody else changes what is looked at.
	if wait > 0 && !changed(look) {
		entry.Wait = wait
	}
	return entry
}

// Reconcile is what the detector is told about a reconcile that did not fail.
type Reconcile struct {
	// Started is when it started.
	Started time.Time
	// Generation is that of the resource when the reconcile started, 0 if there was none.
	Generation int64
	// Resource is what is reconciled. It tells new generations that the controller itself has written from those of
	// others. Optional.
	Resource guard.Object
	// Exists is true when the resource existed when the reconcile started.
	Exists bool
	// RequeueAfter is what it asks for.
	RequeueAfter time.Duration
	// Journal has what it wrote.
	Journal *guard.Journal
}

// Loop is a hot loop that was found.
type Loop struct {
	// Reconciles is how many reconciles there were in a row, and Within the time they took.
	Reconciles int
	Within     time.Duration
}

// Leave is called after a reconcile that did not fail. It returns a hot loop when this reconcile completes one, once
// until that has ended.
func (d *Detector) Leave(req reconcile.Request, this Reconcile) *Loop {
	written, generation := map[guard.Object]guard.State(nil), this.Generation
	for object, state := range this.Journal.Written {
		if written == nil {
			written = map[guard.Object]guard.State{}
		}
		written[object] = state
		if object == this.Resource {
			generation = max(generation, state.Generation)
		}
	}
	atOnce := this.RequeueAfter > 0 && this.RequeueAfter < Short
	if written == nil && !atOnce {
		d.Forget(req)
		return nil
	}

	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.rows[req]
	if r != nil && !atOnce && r.unchanged(written) {
		d.forget(req)
		return nil
	}
	if r == nil || r.ends(this) {
		if r = d.start(req, now); r == nil {
			return nil
		}
		r.since = this.Started
	} else {
		r.reconciles++
		switch {
		case r.foreign(this.Journal.Reads(), written):
			r.points, r.delay = min(r.points, inspectAt), 0
		default:
			r.count(written)
			d.recent[d.next%Limit] = now
			d.next++
			r.delay = r.nextDelay()
		}
	}
	r.note(this.Journal.Reads(), written)
	r.generation, r.exists = generation, this.Exists
	r.ended, r.requeue, r.early = now, this.RequeueAfter, false
	if atOnce {
		r.requeue = 0
	}
	if r.points < hotAt || !r.hot && now.Sub(d.recent[d.next%Limit]) > Window {
		r.delay, r.until = 0, time.Time{}
		return nil
	}
	r.delay = max(r.delay, firstDelay)
	r.until = now.Add(r.delay)
	if r.hot {
		return nil
	}
	r.hot = true
	return &Loop{Reconciles: r.reconciles, Within: now.Sub(r.since)}
}

// Forget ends the row of a request.
func (d *Detector) Forget(req reconcile.Request) {
	if d.Idle() {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forget(req)
}

func (d *Detector) forget(req reconcile.Request) {
	delete(d.rows, req)
	d.watched.Store(int64(len(d.rows)))
}

// start returns a new row, and nil if there are too many.
func (d *Detector) start(req reconcile.Request, now time.Time) *row {
	if d.rows == nil {
		d.rows = map[reconcile.Request]*row{}
	}
	d.sweep(now)
	if len(d.rows) >= maxRows && d.rows[req] == nil {
		return nil
	}
	r := &row{reconciles: 1}
	d.rows[req] = r
	d.watched.Store(int64(len(d.rows)))
	return r
}

// sweep ends the rows of resources that have not been reconciled for long, most often because they no longer exist.
func (d *Detector) sweep(now time.Time) {
	if now.Sub(d.swept) < sweepInterval {
		return
	}
	d.swept = now
	for req, r := range d.rows {
		if now.Sub(r.ended) > pause {
			delete(d.rows, req)
		}
	}
}

// ends reports whether the last reconcile did not drive this one.
func (r *row) ends(this Reconcile) bool {
	byTimer := r.requeue >= Short && !r.early
	return byTimer || this.Generation > r.generation || this.Started.Sub(r.ended) > pause
}

// unchanged reports whether writes have left all objects as the last reconcile has left them. No event follows then:
// the API server stores nothing for them.
func (r *row) unchanged(written map[guard.Object]guard.State) bool {
	for object, state := range written {
		if last, ok := r.last[object]; !ok || last != state || state.Version == "" {
			return false
		}
	}
	return true
}

// count adds a reconcile to the row.
func (r *row) count(written map[guard.Object]guard.State) {
	points := repeated
	for object := range written {
		if !r.written[object] {
			points = fresh
		}
	}
	r.points = min(r.points+points, hotAt)
}

func (r *row) nextDelay() time.Duration { return min(2*r.delay, lastDelay) }

// foreign reports whether another client has changed something that the reconcile has read and not written. Without an
// earlier inspection to compare with, that is not known.
func (r *row) foreign(reads guard.Versions, written map[guard.Object]guard.State) bool {
	if reads == nil || r.versions == nil {
		return false
	}
	for object, version := range reads {
		if _, ok := written[object]; ok {
			continue
		}
		known, ok := r.versions[object]
		if ok && known != version || !ok && len(r.versions) < guard.MaxReads {
			return true
		}
	}
	return false
}

// note remembers what a reconcile has read and written.
func (r *row) note(reads guard.Versions, written map[guard.Object]guard.State) {
	r.last = written
	if r.written == nil {
		r.written = map[guard.Object]bool{}
	}
	for object := range written {
		if len(r.written) < maxWritten {
			r.written[object] = true
		}
	}
	if reads == nil {
		return
	}
	if r.versions == nil {
		r.versions = guard.Versions{}
	}
	know := func(object guard.Object, version string) {
		if _, ok := r.versions[object]; ok || len(r.versions) < guard.MaxReads {
			r.versions[object] = version
		}
	}
	for object, version := range reads {
		know(object, version)
	}
	for object, state := range written {
		know(object, state.Version)
	}
}
