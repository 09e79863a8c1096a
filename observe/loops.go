// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/engine/guard"
	"trueup.dev/internal/engine/hotloop"
)

const (
	// loopAgain is how often a loop is reported while it lasts.
	loopAgain = 30 * time.Second
	// maxReported limits the number of loops that are reported again.
	maxReported = 1000
)

// loops finds the loops of a controller whose reconciler has no steps. Reconcilers with steps find their loops
// themselves. It delays nothing.
type loops struct {
	detector hotloop.Detector

	mu       sync.Mutex
	reported map[reconcile.Request]reportedLoop
}

type reportedLoop struct {
	LoopFound
	at time.Time
}

// seen is what a run has read. Its journal is in rare.
type seen struct {
	hasSteps atomic.Bool
	// inspectReads and inspectWrites report what the journal records in detail. They are set before the run starts.
	inspectReads, inspectWrites bool
	// missing reports whether the reconciled object does not exist, and generation is its generation.
	missing    bool
	generation int64
}

// journal returns the journal of a run, or nil if it is empty.
func (r *running) journal() *guard.Journal {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rare == nil {
		return nil
	}
	return &r.rare.journal
}

// enter is called before a run.
func (l *loops) enter(req reconcile.Request, r *running) {
	entry := l.detector.Enter(req, func(hotloop.Look) bool { return true }) // nothing is delayed
	switch {
	case entry.Inspect:
		r.forRare().journal.Inspect()
	case entry.InspectWrites:
		r.forRare().journal.InspectWrites()
	}
	r.seen.inspectReads, r.seen.inspectWrites = entry.Inspect, entry.InspectWrites || entry.Inspect
}

// leave is called after a run that did not panic, and reports its loops.
func (l *loops) leave(ctx context.Context, req reconcile.Request, r *running, finished *ReconcileFinished) {
	if r.seen.hasSteps.Load() {
		l.detector.Forget(req) // a run before had none, for example one that released the object for another shard
		return
	}
	journal := r.journal()
	this := hotloop.Reconcile{
		Started: r.Started, Generation: r.seen.generation, Exists: !r.seen.missing, Journal: journal,
		Resource:     guard.NewObject(r.Kind.GroupKind(), req.NamespacedName),
		RequeueAfter: finished.Result.RequeueAfter,
	}
	writes := hotloop.ObjectWrites(journal)
	for _, w := range writes {
		this.Changes = append(this.Changes, w.Hashed())
	}
	var found []LoopFound
	conflicts, remade := l.detector.Compare(req, this)
	for _, o := range remade {
		found = append(found, LoopFound{Reconciles: o.Times, Within: o.Within, Repeats: []string{o.Describe()}})
	}
	for _, c := range conflicts {
		found = append(found, LoopFound{
			Reconciles: c.Times, Within: c.Within, Repeats: []string{writes[c.Write].Describe(c)},
		})
	}
	if finished.Err == nil { // a failed request backs off
		if loop := l.detector.Leave(req, this); loop != nil {
			repeats := l.detector.Repetitions(req, journal, r.Started)
			if after := finished.Result.RequeueAfter; after > 0 && after < hotloop.Short {
				repeats = append(repeats, fmt.Sprintf("returns RequeueAfter %s", after))
			}
			found = append(found, LoopFound{Reconciles: loop.Reconciles, Within: loop.Within, Repeats: repeats})
		}
	}
	if len(found) == 0 && l.detector.Ongoing(req, r.Started) {
		found = l.again(req)
	}
	for _, loop := range found {
		l.remember(req, loop)
		loop.Run = &r.Run
		r.controller.hub.Observe(ctx, &loop)
	}
}

// again returns the loop of a request, if it was reported long ago.
func (l *loops) again(req reconcile.Request) []LoopFound {
	l.mu.Lock()
	defer l.mu.Unlock()
	loop, ok := l.reported[req]
	if now := time.Now(); ok && now.Sub(loop.at) >= loopAgain {
		loop.Within += now.Sub(loop.at)
		return []LoopFound{loop.LoopFound}
	}
	return nil
}

func (l *loops) remember(req reconcile.Request, loop LoopFound) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.reported) >= maxReported || l.reported == nil {
		l.reported = map[reconcile.Request]reportedLoop{} // the others are reported when they are found again
	}
	l.reported[req] = reportedLoop{loop, time.Now()}
}

// note notes a finished call of the run.
func (r *running) note(call *Call) {
	if r.seen.hasSteps.Load() || call.DryRun {
		return
	}
	if !call.IsWrite() {
		r.noteRead(call)
		return
	}
	if call.Err != nil || call.Verb == VerbDeleteCollection || call.Verb == VerbCreate && call.Subresource != "" {
		return
	}
	object, version, generation := guard.NewObject(call.Kind.GroupKind(), call.Object), call.After, int64(0)
	if obj, ok := call.answer.(client.Object); ok {
		generation = obj.GetGeneration()
	}
	if call.Verb == VerbDelete {
		version = call.Before
	}
	r.mu.Lock()
	journal := &r.forRare().journal
	r.mu.Unlock()
	journal.NoteWrite(object, version, generation, call.Verb == VerbDelete)
	if !r.seen.inspectWrites {
		return
	}
	change := guard.Change{
		Verb: verbOf(call), Kind: call.Kind.GroupKind(), Key: call.Object, Object: object, Subresource: call.Subresource,
	}
	for _, known := range []any{call.before, call.answer} {
		if obj, ok := known.(client.Object); ok && obj.GetUID() != "" {
			change.UID = obj.GetUID()
		}
	}
	if call.before != nil && call.after != nil && call.requested != nil {
		change.Before, change.Requested = call.before.DeepCopyObject().(client.Object), call.requested
		change.After = call.after.DeepCopyObject().(client.Object)
	}
	journal.NoteChange(change)
}

func (r *running) noteRead(call *Call) {
	if call.Verb == VerbGet && call.Subresource == "" && call.Object == r.Object && call.Kind == r.Kind {
		r.mu.Lock()
		r.seen.missing = apierrors.IsNotFound(call.Err)
		if obj := call.Returned(); obj != nil {
			r.seen.generation = obj.GetGeneration()
		}
		r.mu.Unlock()
	}
	if r.seen.inspectReads {
		journal := r.journal()
		call.EachObject(func(obj client.Object) {
			journal.NoteRead(guard.NewObject(call.Kind.GroupKind(), client.ObjectKeyFromObject(obj)), obj.GetResourceVersion())
		})
	}
}

// verbOf returns the verb of a write in the third person.
func verbOf(call *Call) string {
	verb := map[string]string{
		VerbCreate: "creates", VerbUpdate: "updates", VerbPatch: "patches", VerbDelete: "deletes",
	}[call.Verb]
	if call.Apply {
		verb = "applies"
	}
	if call.Subresource != "" {
		verb += " " + call.Subresource + " of"
	}
	return verb
}
