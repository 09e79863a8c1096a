// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"container/list"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"trueup.dev/observe"
)

const (
	// maxRuns limits the successful and the failed runs that are kept of one object.
	maxRuns = 16
	// maxWaiting limits the causes of runs that did nothing but wait.
	maxWaiting = 16
	// elementBytes is the memory of an element of a list, and entryBytes the memory of an entry of the map of objects.
	elementBytes, entryBytes = 64, 80
)

// The memory of values, without what they refer to.
var (
	objectBytes   = sizeOf[object]() + 2*elementBytes + entryBytes
	runBytes      = sizeOf[keptRun]() + elementBytes
	shapeBytes    = sizeOf[shape]()
	durationBytes = sizeOf[time.Duration]()
	stepBytes     = sizeOf[step]()
	callBytes     = sizeOf[stepCall]()
	causeBytes    = sizeOf[Cause]()
	changeBytes   = sizeOf[observe.Change]()
)

func sizeOf[T any]() int { return int(reflect.TypeFor[T]().Size()) }

// object is what the recorder has of an object. It is protected by the mutex of the recorder.
type object struct {
	key     objectKey
	summary Object
	search  string // what a search compares with, in lower case
	bytes   int    // without the runs
	// used is the last run, and noOpUse the last run without a write.
	used, noOpUse use

	runs    []*keptRun // the oldest first
	noOp    noOpRun
	noOps   int     // the number of runs without a write and without an error since the last kept run
	waiting []Cause // the causes of runs that did nothing but wait
}

// keptRun is a run as JSON, so that it takes as little memory as possible and the garbage collector need not scan it.
type keptRun struct {
	object  *object
	json    []byte
	outcome Outcome
	// first reports whether the run before succeeded.
	first   bool
	element *list.Element
}

// touch returns an object, and makes it the one that was reconciled last.
func (r *Recorder) touch(controller string, ref Ref) *object {
	key := objectKey{controller: controller}
	key.object.Namespace, key.object.Name = ref.Namespace, ref.Name
	if o, ok := r.objects[key]; ok {
		r.recent.touch(&o.used)
		return o
	}
	o := &object{key: key, summary: Object{Controller: controller, Object: ref}}
	o.search = strings.ToLower(strings.Join([]string{controller, ref.Kind, ref.Group, ref.Key()}, " "))
	o.used.object, o.noOpUse.object = o, o
	r.recent.touch(&o.used)
	r.objects[key] = o
	r.setBytes(o)
	return o
}

func (r *Recorder) setBytes(o *object) {
	bytes := objectBytes + 2*len(o.search) + len(o.summary.Error) + len(o.summary.Step) + len(o.summary.NotReady) +
		len(o.summary.HaltReason) +
		causeBytes*cap(o.waiting)
	r.bytes.objects += bytes - o.bytes
	o.bytes = bytes
}

// keep keeps a run that wrote or failed.
func (r *Recorder) keep(rec *runState, run Run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.touch(rec.controller, rec.object)
	run.NoOpsBefore, o.noOps = o.noOps, 0
	o.takeWaiting(rec)
	run.Causes = slices.Clone(rec.causes)
	first := o.summary.FailedInRow == 0
	r.controllerOf(rec).waited(&o.summary, rec)
	o.summary.update(rec, run.Outcome)
	if run.Outcome.IsFailure() {
		o.summary.fail(&run)
	}
	r.setBytes(o)
	r.controllerOf(rec).add(rec, run.Outcome)

	encoded, err := json.Marshal(run)
	if err != nil {
		return // strings, numbers and times are always encoded
	}
	kept := &keptRun{object: o, json: encoded, outcome: run.Outcome, first: first}
	o.runs = append(o.runs, kept)
	if kept.outcome.IsFailure() {
		kept.element = r.failed.PushFront(kept)
		r.bytes.failed += len(encoded) + runBytes
	} else {
		kept.element = r.successful.PushFront(kept)
		r.bytes.successful += len(encoded) + runBytes
	}
	r.limitRuns(o, kept.outcome.IsFailure())
	r.limitBytes()
}

// keepNoOp counts a run without a write and without an error, and keeps it instead of the one before.
func (r *Recorder) keepNoOp(rec *runState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o, c := r.touch(rec.controller, rec.object), r.controllerOf(rec)
	o.takeWaiting(rec)
	c.waited(&o.summary, rec)
	o.summary.update(rec, NoOp)
	o.noOps++
	c.add(rec, NoOp)
	r.setBytes(o)
	r.noOps.touch(&o.noOpUse)
	r.setNoOp(o, c, rec)
	r.limitBytes()
}

// limitRuns drops the oldest successful or failed run of an object that has too many of these. The first failed run
// since the object fails is the most interesting one, so it is kept.
func (r *Recorder) limitRuns(o *object, failures bool) {
	count, oldest, first := 0, -1, -1
	for i, run := range o.runs {
		if run.outcome.IsFailure() != failures {
			continue
		}
		count++
		if run.first && failures {
			first = i
		}
	}
	if count <= maxRuns {
		return
	}
	for i, run := range o.runs {
		if run.outcome.IsFailure() == failures && i != first {
			oldest = i
			break
		}
	}
	r.drop(o.runs[oldest])
}

// drop removes a run from its object.
func (r *Recorder) drop(run *keptRun) {
	o := run.object
	o.runs = slices.DeleteFunc(o.runs, func(other *keptRun) bool { return other == run })
	if run.outcome.IsFailure() {
		r.failed.Remove(run.element)
		r.bytes.failed -= len(run.json) + runBytes
	} else {
		r.successful.Remove(run.element)
		r.bytes.successful -= len(run.json) + runBytes
	}
}

// limitBytes drops what is least interesting until the memory is below the limit. A quarter of the memory is left to
// runs that wrote, and a quarter to failed ones. Runs without a write have what remains.
func (r *Recorder) limitBytes() {
	r.limitJournals()
	quarter := r.options.Bytes / 4
	for r.bytes.total() > r.options.Bytes {
		switch {
		case r.bytes.successful > quarter:
			r.drop(r.successful.Back().Value.(*keptRun))
		case r.bytes.failed > quarter:
			r.drop(r.failed.Back().Value.(*keptRun))
		case r.noOps.order.Len() > 0:
			r.dropNoOp(r.noOps.oldest())
		case r.recent.order.Len() > 1:
			r.forget(r.recent.oldest())
		case r.successful.Len() > 0:
			r.drop(r.successful.Back().Value.(*keptRun))
		case r.failed.Len() > 0:
			r.drop(r.failed.Back().Value.(*keptRun))
		default:
			return // a limit below the size of a single object
		}
	}
}

// forget removes an object and its runs.
func (r *Recorder) forget(o *object) {
	for _, run := range slices.Clone(o.runs) {
		r.drop(run)
	}
	if o.noOp.shape != nil {
		r.dropNoOp(o)
	}
	r.recent.remove(&o.used)
	delete(r.objects, o.key)
	if j, ok := r.journals[o.key]; ok {
		r.dropJournal(j)
	}
	r.bytes.objects -= o.bytes
}

// forgetCluster removes the controllers of a cluster, with their objects.
func (r *Recorder) forgetCluster(cluster string) {
	for key, o := range r.objects {
		if clusterOf(key.controller) == cluster {
			r.forget(o)
		}
	}
	for key, j := range r.journals { // of objects that are not kept
		if clusterOf(key.controller) == cluster {
			r.dropJournal(j)
		}
	}
	for name := range r.controllers {
		if clusterOf(name) == cluster {
			delete(r.controllers, name)
		}
	}
}

// keepWait counts a run that did nothing but wait for the caches or for the lease. The next run gets its causes.
func (r *Recorder) keepWait(rec *runState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.touch(rec.controller, rec.object)
	switch {
	case rec.withoutLease:
		o.summary.LeaseWaits++
	default:
		if o.summary.StaleWaits == 0 {
			o.summary.WaitingSince = rec.started
		}
		o.summary.StaleWaits++
		r.controllerOf(rec).StaleWaits++
	}
	o.summary.Next = rec.next
	o.waiting = append(o.waiting, rec.causes...)
	o.waiting = o.waiting[:min(len(o.waiting), maxWaiting)]
	r.setBytes(o)
	r.limitBytes()
}

// takeWaiting adds the causes of the runs that waited to a run.
func (o *object) takeWaiting(rec *runState) {
	if len(o.waiting) > 0 {
		rec.causes = append(o.waiting, rec.causes...)
		o.waiting = nil
	}
}
