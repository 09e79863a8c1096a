// SPDX-License-Identifier: Apache-2.0

package hotloop

import (
	"sync"
	"sync/atomic"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/engine/guard"
	"trueup.dev/internal/engine/transient"
)

const (
	// Short is the shortest requeue that is not treated as immediate. Five reconciles per second are polling.
	Short = 200 * time.Millisecond

	// Limit is the number of consecutive reconciles that make a hot loop, if the whole controller made as many such
	// reconciles within Window. A resource that converges needs fewer, and a loop that polls makes at most five per
	// second.
	Limit = 100
	// Window is the time within which a controller must make Limit such reconciles.
	Window = 20 * time.Second

	// A reconcile that repeats earlier writes counts repeatedWrite points. A reconcile that writes an object for the
	// first time in the streak counts newWrite points.
	repeatedWrite, newWrite = 10, 1
	hotAt                   = Limit * repeatedWrite
	inspectAt               = hotAt / 2

	// firstDelay and lastDelay are the minimum and maximum delay of a request. The delay doubles each time.
	firstDelay, lastDelay = time.Second, time.Minute

	// idleTimeout is the time without a reconcile after which a streak ends.
	idleTimeout = 5 * time.Minute
	// maxStreaks limits the number of streaks. maxWritten limits the number of objects that are recorded for each
	// streak.
	maxStreaks, maxWritten = 10_000, 64
	sweepInterval          = time.Minute
)

// Detector detects the hot loops of one controller. The zero value is ready to use. Its methods are safe for concurrent
// use.
type Detector struct {
	// watched is the number of streaks and histories. It allows a check without locking.
	watched atomic.Int64

	mu sync.Mutex
	// streaks and histories are keyed by requestID.
	streaks transient.Map[uint64, *streak]
	// histories are independent of streaks, because a conflict can be slow.
	histories map[uint64]*history
	swept     time.Time
	// recent holds the times of the last counted reconciles of all resources. next is the index of the oldest.
	recent [Limit]time.Time
	next   int
}

// streak is a sequence of reconciles of one resource in which each reconcile triggered the next one.
type streak struct {
	points, reconciles int
	since, ended       time.Time
	generation         int64
	exists             bool
	// requeue is the RequeueAfter of the last reconcile. early reports whether the next reconcile started before that
	// time.
	requeue time.Duration
	early   bool
	// written holds the objects that the streak has written, and last holds the writes of the last reconcile.
	written map[guard.Object]bool
	last    map[guard.Object]guard.State
	// versions holds the versions of objects that inspected requests have read and written.
	versions guard.Versions

	// hot reports whether the streak is a hot loop.
	hot   bool
	delay time.Duration
	until time.Time
}

// Entry is the decision about a request that is about to start.
type Entry struct {
	// Wait is the delay of the request. 0 means no delay.
	Wait time.Duration
	// Inspect reports whether to inspect the reads and the writes of the request, InspectWrites whether to inspect its
	// writes.
	Inspect, InspectWrites bool
}

// Look describes the last reconciles of a resource. The caller uses it to detect changes by other clients.
type Look struct {
	// Generation is the generation of the resource after the last reconcile. AnyGeneration reports whether another
	// generation is not a change, because another client changes the resource itself back and forth.
	Generation    int64
	AnyGeneration bool
	// Existed reports whether the resource existed before the last reconcile.
	Existed bool
	// Versions holds the objects that the last reconciles have read. Ours reports whether the last reconcile wrote an
	// object.
	Versions guard.Versions
	Ours     func(guard.Object) bool
}

// Idle reports whether no resource has a streak or a history. Then Enter need not be called.
func (d *Detector) Idle() bool { return d.watched.Load() == 0 }

// Enter is called for a request that is about to start. changed reports whether other clients have changed an object
// since the last reconcile. It is called only for requests that would be delayed.
func (d *Detector) Enter(req reconcile.Request, changed func(Look) bool) Entry {
	if d.Idle() {
		return Entry{}
	}
	now := time.Now()
	entry, wait, look := d.enter(requestID(req), now)
	// The queue runs at most one request for a resource at a time, so the state of the request does not change
	// concurrently.
	if wait > 0 && !changed(look) {
		entry.Wait = wait
	}
	return entry
}

// enter returns the entry of a request, its wait if other clients have changed nothing, and what to look for.
func (d *Detector) enter(id uint64, now time.Time) (entry Entry, wait time.Duration, look Look) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if h := d.histories[id]; h != nil {
		entry.InspectWrites = true
		if h.suspicion != nil {
			entry.Inspect = now.Sub(h.suspected) < conflictGap
			wait, look = h.until.Sub(now), h.look
		}
	}
	r := d.streaks.Get(id)
	if r == nil {
		return entry, wait, look
	}
	if now.Before(r.ended.Add(r.requeue)) {
		r.early = true
	}
	entry.Inspect = entry.Inspect || r.points >= inspectAt || r.hot
	if streakWait := r.until.Sub(now); streakWait > max(wait, 0) {
		last := r.last
		wait, look = streakWait, Look{
			Generation: r.generation, Existed: r.exists, Versions: r.versions,
			Ours: func(o guard.Object) bool { _, ok := last[o]; return ok },
		}
	}
	return entry, wait, look
}

// Reconcile describes a reconcile.
type Reconcile struct {
	// Started is the time when the reconcile started.
	Started time.Time
	// Generation is the generation of the resource when the reconcile started, or 0 if the resource did not exist.
	Generation int64
	// Resource is the reconciled resource. It is needed to recognize new generations that the controller itself has
	// written. Optional.
	Resource guard.Object
	// Exists reports whether the resource existed when the reconcile started.
	Exists bool
	// RequeueAfter is the requeue that the reconcile requests.
	RequeueAfter time.Duration
	// Journal records the writes of the reconcile.
	Journal *guard.Journal
	// Changes are the changes of objects by an inspected reconcile, at most one for each object.
	Changes []Write
}

// Loop is a detected hot loop.
type Loop struct {
	// Reconciles is the number of reconciles in the streak, and Within is their total time.
	Reconciles int
	Within     time.Duration
}

// Leave is called after a reconcile that did not fail. If the reconcile completes a hot loop, Leave returns the loop,
// once until the loop ends.
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

	id, now := requestID(req), time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.streaks.Get(id)
	if r != nil && !atOnce && r.unchanged(written) {
		d.forget(id)
		return nil
	}
	if r == nil || r.ends(this) {
		if r = d.start(id, now); r == nil {
			return nil
		}
		r.since = this.Started
	} else {
		r.reconciles++
		switch {
		case r.changedByOthers(this.Journal.Reads(), written):
			r.points, r.delay = min(r.points, inspectAt), 0
		default:
			r.add(written)
			d.recent[d.next%Limit] = now
			d.next++
			r.delay = r.nextDelay()
		}
	}
	r.record(this.Journal.Reads(), written)
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

// Ongoing reports whether a request is in a hot loop, or has repeated a conflict since a time.
func (d *Detector) Ongoing(req reconcile.Request, since time.Time) bool {
	if d.Idle() {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	id := requestID(req)
	r, h := d.streaks.Get(id), d.histories[id]
	return r != nil && r.hot || h != nil && h.suspicion != nil && !h.conflicted.Before(since)
}

// Forget ends the streak of a request.
func (d *Detector) Forget(req reconcile.Request) {
	if d.Idle() {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forget(requestID(req))
}

func (d *Detector) forget(id uint64) {
	d.streaks.Delete(id)
	d.count()
}

func (d *Detector) count() { d.watched.Store(int64(d.streaks.Len() + len(d.histories))) }

// start returns a new streak, or nil if the detector has too many streaks.
func (d *Detector) start(id uint64, now time.Time) *streak {
	d.sweep(now)
	if d.streaks.Len() >= maxStreaks && d.streaks.Get(id) == nil {
		return nil
	}
	r := &streak{reconciles: 1}
	d.streaks.Put(id, r)
	d.count()
	return r
}

// sweep ends the streaks of resources that were not reconciled for idleTimeout, usually because they no longer exist,
// and the histories of resources for which nothing was written for conflictGap.
func (d *Detector) sweep(now time.Time) {
	if now.Sub(d.swept) < sweepInterval {
		return
	}
	d.swept = now
	d.streaks.DeleteFunc(func(_ uint64, r *streak) bool { return now.Sub(r.ended) > idleTimeout })
	for id, h := range d.histories {
		if now.Sub(h.last) > conflictGap {
			delete(d.histories, id)
		}
	}
}

// ends reports whether this reconcile was not triggered by the previous one.
func (r *streak) ends(this Reconcile) bool {
	byTimer := r.requeue >= Short && !r.early
	return byTimer || this.Generation > r.generation || this.Started.Sub(r.ended) > idleTimeout
}

// unchanged reports whether the writes left all objects as the last reconcile left them. The API server then stores no
// change and sends no watch event.
func (r *streak) unchanged(written map[guard.Object]guard.State) bool {
	for object, state := range written {
		if last, ok := r.last[object]; !ok || last != state || state.Version == "" {
			return false
		}
	}
	return true
}

// add adds a reconcile to the streak.
func (r *streak) add(written map[guard.Object]guard.State) {
	points := repeatedWrite
	for object := range written {
		if !r.written[object] {
			points = newWrite
		}
	}
	r.points = min(r.points+points, hotAt)
}

func (r *streak) nextDelay() time.Duration { return min(2*r.delay, lastDelay) }

// changedByOthers reports whether another client has changed an object that the reconcile has read and not written. It
// returns false if no earlier inspection exists.
func (r *streak) changedByOthers(reads guard.Versions, written map[guard.Object]guard.State) bool {
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

// record stores the objects that a reconcile has read and written.
func (r *streak) record(reads guard.Versions, written map[guard.Object]guard.State) {
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
	setVersion := func(object guard.Object, version string) {
		if _, ok := r.versions[object]; ok || len(r.versions) < guard.MaxReads {
			r.versions[object] = version
		}
	}
	for object, version := range reads {
		setVersion(object, version)
	}
	for object, state := range written {
		setVersion(object, state.Version)
	}
}
