// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"slices"
	"time"

	"trueup.dev/observe"
)

// noOpRun is the last run of an object without a write and without an error. Most objects have one, and most runs
// replace one, so it is small, and shares with other objects what does not differ.
type noOpRun struct {
	id            string
	started       time.Time
	duration      time.Duration
	durations     []time.Duration // of the steps
	shape         *shape          // nil if there is no such run
	causes        []Cause
	omittedCauses int
	next          *Next
	calls         []stepCall
	size          int
}

// shape is what the runs of a controller have in common. It never changes, except for users.
type shape struct {
	steps       []step // without durations
	cachedReads int
	omitted     int
	// users is the number of runs with this shape that are kept.
	users int
}

func newShape(rec *runState) *shape {
	s := &shape{steps: slices.Clone(rec.steps), cachedReads: rec.cachedReads, omitted: rec.omitted}
	for i := range s.steps {
		s.steps[i].duration = 0
	}
	return s
}

func (s *shape) size() int {
	size := shapeBytes + stepBytes*len(s.steps)
	for i := range s.steps {
		size += len(s.steps[i].err)
	}
	return size
}

// isOf reports whether a run has the shape.
func (s *shape) isOf(rec *runState) bool {
	if s == nil || s.cachedReads != rec.cachedReads || s.omitted != rec.omitted || len(s.steps) != len(rec.steps) {
		return false
	}
	for i := range s.steps {
		a, b := &s.steps[i], &rec.steps[i]
		if a.name != b.name || a.parent != b.parent || a.outcome != b.outcome || a.cachedReads != b.cachedReads ||
			a.depth != b.depth || a.err != b.err {
			return false
		}
	}
	return true
}

// setNoOp keeps a run as the last one of an object without a write.
func (r *Recorder) setNoOp(o *object, c *controller, rec *runState) {
	n := &o.noOp
	switch {
	case c.shape.isOf(rec):
		r.useShape(n, c.shape)
	case n.shape.isOf(rec):
	default:
		c.shape = newShape(rec)
		r.useShape(n, c.shape)
	}
	n.id, n.started, n.duration, n.next, n.omittedCauses = rec.id, rec.started, rec.duration, rec.next, rec.omittedCauses
	n.durations = n.durations[:0]
	for i := range rec.steps {
		n.durations = append(n.durations, rec.steps[i].duration)
	}
	n.causes = append(n.causes[:0], rec.causes...)
	n.calls = append(n.calls[:0], rec.calls...)
	size := n.estimate()
	r.bytes.noOps += size - n.size
	n.size = size
}

// useShape sets the shape of a run. The memory of a shape counts while it has users.
func (r *Recorder) useShape(n *noOpRun, s *shape) {
	if n.shape == s {
		return
	}
	if before := n.shape; before != nil {
		if before.users--; before.users == 0 {
			r.bytes.noOps -= before.size()
		}
	}
	if n.shape = s; s != nil {
		if s.users++; s.users == 1 {
			r.bytes.noOps += s.size()
		}
	}
}

// dropNoOp drops the last run of an object without a write.
func (r *Recorder) dropNoOp(o *object) {
	r.noOps.remove(&o.noOpUse)
	r.useShape(&o.noOp, nil)
	r.bytes.noOps -= o.noOp.size
	o.noOp = noOpRun{}
}

// estimate estimates the memory without the shape.
func (n *noOpRun) estimate() int {
	size := len(n.id) + durationBytes*cap(n.durations) + causeBytes*cap(n.causes) + callBytes*cap(n.calls)
	for i := range n.causes {
		size += len(n.causes[i].Error) + changesSize(n.causes[i].Changes)
	}
	for i := range n.calls {
		size += len(n.calls[i].Error) + changesSize(n.calls[i].Changes)
	}
	return size
}

func changesSize(changes []observe.Change) int {
	size := changeBytes * cap(changes)
	for _, c := range changes {
		size += len(c.Path) + len(c.Before) + len(c.After)
	}
	return size
}

// result returns the run.
func (n *noOpRun) result() Run {
	rec := &runState{
		id: n.id, started: n.started, duration: n.duration, causes: n.causes, omittedCauses: n.omittedCauses,
		steps: slices.Clone(n.shape.steps), calls: n.calls, cachedReads: n.shape.cachedReads, omitted: n.shape.omitted,
		next: n.next,
	}
	for i := range rec.steps {
		rec.steps[i].duration = n.durations[i]
	}
	return rec.result(NoOp)
}
