// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"encoding/json"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"trueup.dev/observe"
	"trueup.dev/observe/recording"
)

var (
	journalBytes       = sizeOf[journal]() + elementBytes + entryBytes
	knownBytes         = sizeOf[objectID]() + sizeOf[knownObject]() + entryBytes
	journalRunBytes    = sizeOf[journalRun]()
	journalObjectBytes = sizeOf[journalObject]()
)

// finishJournal adds the run that has finished to its journal, if anything of it was kept, and makes the journal the
// one that was used last.
func (r *Recorder) finishJournal(j *journal, e *observe.ReconcileFinished, rec *runState, outcome Outcome) {
	j.mu.Lock()
	j.finish(e, rec, outcome)
	size := j.bytes()
	j.mu.Unlock()

	r.mu.Lock()
	defer r.mu.Unlock()
	if r.journals[j.key] != j {
		return // it was dropped meanwhile
	}
	r.bytes.journals += size - j.size
	j.size = size
	r.journalOrder.MoveToFront(j.element)
	r.limitBytes()
}

func (j *journal) finish(e *observe.ReconcileFinished, rec *runState, outcome Outcome) {
	calls, objects, omitted := j.calls, j.objects, j.omittedCalls
	j.calls, j.objects, j.omittedCalls = nil, nil, 0
	if outcome == NoOp && len(objects) == 0 && rec.loop == nil && !slices.ContainsFunc(calls, saysMore) {
		j.noOps++
		return
	}
	run := recording.Run{
		ID: e.Run.ID, Started: e.Run.Started, Duration: e.Duration, Outcome: string(outcome), Objects: objects,
		Calls: calls, Omitted: omitted, Loop: rec.loop != nil, NoOpsBefore: j.noOps,
	}
	if e.Err != nil {
		run.Error = textOf(e.Err)
	}
	for i := range e.Run.Causes {
		c := &e.Run.Causes[i]
		cause := recording.Cause{
			Type: string(c.Type), At: c.At, Object: recording.Ref(refOf(c.Kind, c.Object)), Verb: string(c.Verb),
			Count: c.Count, After: c.After, Attempt: c.Attempt,
		}
		if obj := c.EventObject(); obj != nil {
			cause.Version = obj.GetResourceVersion()
		}
		if c.Err != nil {
			cause.Error = textOf(c.Err)
		}
		run.Causes = append(run.Causes, cause)
	}
	encoded, err := json.Marshal(run)
	if err != nil {
		return // strings, numbers, times and valid JSON are always encoded
	}
	j.noOps = 0
	j.runs = append(j.runs, journalRun{encoded, objectsOf(objects, calls)})
	if len(j.runs) > maxJournal {
		j.dropRun()
	}
}

// saysMore reports whether a call is worth keeping if its run changed nothing: it is not a read of what is known.
func saysMore(c recording.Call) bool {
	isRead := c.Verb == observe.VerbGet || c.Verb == observe.VerbList
	return !isRead || c.Error != nil || len(c.Objects) > 0 || len(c.Stale) > 0
}

// objectsOf returns the last version of each object that causes and calls had.
func objectsOf(ofCauses []recording.Object, calls []recording.Call) []journalObject {
	var objects []journalObject
	add := func(found []recording.Object) {
		for _, obj := range found {
			if len(obj.Content) > 0 {
				objects = latest(objects, journalObject{idOf(obj.Ref), obj.ResourceVersion, obj.Content})
			}
		}
	}
	add(ofCauses)
	for _, call := range calls {
		add(call.Objects)
		if call.Verb == observe.VerbGet && call.Error != nil && call.Error.Reason == "NotFound" && len(call.Stale) == 0 {
			objects = latest(objects, journalObject{objectID: idOf(call.Object)})
		}
	}
	return objects
}

func idOf(ref recording.Ref) objectID {
	id := objectID{NamespacedName: types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}}
	id.kind.Group, id.kind.Version, id.kind.Kind = ref.Group, ref.Version, ref.Kind
	return id
}

// latest adds an object to a list that has each object once.
func latest(objects []journalObject, obj journalObject) []journalObject {
	i := slices.IndexFunc(objects, func(o journalObject) bool { return o.objectID == obj.objectID })
	if i < 0 {
		return append(objects, obj)
	}
	objects[i] = obj
	return objects
}

// dropRun drops the oldest run, and keeps its objects.
func (j *journal) dropRun() {
	for _, obj := range j.runs[0].objects {
		j.before = latest(j.before, obj)
	}
	j.before = slices.DeleteFunc(j.before, func(obj journalObject) bool { return len(obj.content) == 0 })
	j.runs = slices.Delete(j.runs, 0, 1)
	j.omitted++
}

// bytes estimates the memory. The objects of runs are also part of their JSON.
func (j *journal) bytes() int {
	size := journalBytes + knownBytes*len(j.known)
	for _, run := range j.runs {
		size += journalRunBytes + len(run.json) + objectBytesOf(run.objects)
	}
	return size + objectBytesOf(j.before)
}

func objectBytesOf(objects []journalObject) int {
	size := 0
	for _, obj := range objects {
		size += journalObjectBytes + len(obj.content)
	}
	return size
}

// limitJournals drops the journals that were not used for the longest time, until they use at most half of the memory.
// Of the last one, it drops the oldest runs. The caller holds the mutex of the recorder.
func (r *Recorder) limitJournals() {
	for r.bytes.journals > r.options.Bytes/2 {
		j := r.journalOrder.Back().Value.(*journal)
		if r.journalOrder.Len() > 1 {
			r.dropJournal(j)
			continue
		}
		j.mu.Lock()
		if len(j.runs) == 0 {
			j.mu.Unlock()
			return
		}
		j.dropRun()
		size := j.bytes()
		j.mu.Unlock()
		r.bytes.journals += size - j.size
		j.size = size
	}
}

func (r *Recorder) dropJournal(j *journal) {
	r.journalOrder.Remove(j.element)
	delete(r.journals, j.key)
	r.bytes.journals -= j.size
}

// KeepsObjects reports whether the recorder keeps objects. Without them, there are no recordings.
func (r *Recorder) KeepsObjects() bool { return r.options.Objects }

// Recording returns the recording of an object of a controller. It reports false if the recorder does not have it, or
// keeps no objects.
func (r *Recorder) Recording(controller string, object types.NamespacedName) (recording.Recording, bool) {
	key := objectKey{controller, object}
	r.mu.Lock()
	j, ok := r.journals[key]
	o, isKnown := r.objects[key]
	found := recording.Recording{
		Version: recording.Version, Recorded: time.Now(), Controller: controller, Runs: []recording.Run{},
	}
	if isKnown {
		found.Object = recording.Ref(o.summary.Object)
	}
	r.mu.Unlock()
	if !ok || !isKnown {
		return recording.Recording{}, false
	}
	j.mu.Lock()
	before, runs := slices.Clone(j.before), slices.Clone(j.runs)
	found.Omitted = j.omitted
	j.mu.Unlock()
	for _, obj := range before {
		found.Before = append(found.Before, recording.Object{
			Ref: obj.ref(), ResourceVersion: obj.version, Content: obj.content,
		})
	}
	for _, encoded := range runs {
		var run recording.Run
		if err := json.Unmarshal(encoded.json, &run); err == nil { // it is what this package has encoded
			found.Runs = append(found.Runs, run)
		}
	}
	return found, true
}
