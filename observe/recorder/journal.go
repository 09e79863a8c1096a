// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"cmp"
	"container/list"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/observe"
	"trueup.dev/observe/recording"
)

// maxJournal limits the runs of one journal.
const maxJournal = 100

// journal is what recordings of one object consist of: its runs, with the objects of the answers.
type journal struct {
	key     objectKey
	element *list.Element // of Recorder.journals
	size    int           // protected by the mutex of the recorder

	mu sync.Mutex // protects what follows
	// known is what the answers so far had.
	known map[objectID]*knownObject
	// before are the objects of runs that were dropped, as JSON, in order.
	before  []journalObject
	runs    []journalRun // the oldest first
	omitted int
	// objects are the objects of the causes of the run that has not finished.
	objects []recording.Object
	// calls are the calls of the run that has not finished, and omittedCalls is the number of those that were not kept.
	calls        []recording.Call
	omittedCalls int
	// noOps is the number of runs since the last one that was kept.
	noOps int
}

type objectID struct {
	kind schema.GroupVersionKind
	types.NamespacedName
}

// knownObject is what answers had of an object.
type knownObject struct {
	version string
	// absent is set after an answer that the object does not exist.
	absent bool
	// created is set from its creation by the reconciler until an answer from a cache has the object, and deleted from its
	// deletion by the reconciler until an answer has another version.
	created, deleted bool
}

type journalRun struct {
	json    []byte
	objects []journalObject
}

type journalObject struct {
	objectID
	version string
	content []byte // empty if it no longer exists
}

// journalOf returns the journal of an object, if the recorder keeps objects, or nil.
func (r *Recorder) journalOf(run *observe.Run) *journal {
	if !r.options.Objects {
		return nil
	}
	key := objectKey{run.Name(), run.Object}
	r.mu.Lock()
	defer r.mu.Unlock()
	if j, ok := r.journals[key]; ok {
		return j
	}
	j := &journal{key: key, known: map[objectID]*knownObject{}}
	j.element = r.journalOrder.PushFront(j)
	r.journals[key] = j
	return j
}

// start notes the objects of the causes of a run.
func (j *journal) start(run *observe.Run, mask observe.Mask) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range run.Causes {
		c := &run.Causes[i]
		obj := c.EventObject()
		if obj == nil || c.Kind.Empty() || c.Verb == observe.Deleted {
			continue
		}
		id, version := objectID{c.Kind, c.Object}, obj.GetResourceVersion()
		known := j.known[id]
		if known != nil && (known.version == version || isNewer(known.version, version)) {
			continue
		}
		j.known[id] = &knownObject{version: version}
		j.objects = append(j.objects, recording.Object{
			Ref: id.ref(), ResourceVersion: version, Content: content(id, obj, mask),
		})
	}
}

// call adds a call, if it says anything new.
func (j *journal) call(e *observe.Call, mask observe.Mask) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if e.Cached && j.isKnown(e) {
		return
	}
	var found []recording.Object
	var stale []recording.Stale
	if e.Verb == observe.VerbList && e.Cached && e.Err == nil {
		stale = j.missing(e)
	}
	e.EachObject(func(obj client.Object) {
		id := objectID{kindOf(e, obj), client.ObjectKeyFromObject(obj)}
		version := obj.GetResourceVersion()
		switch before, isOld := j.see(id, version, e); {
		case isOld:
			stale = append(stale, recording.Stale{Ref: id.ref(), Has: version, Known: before})
		case before != version:
			found = append(found, recording.Object{Ref: id.ref(), ResourceVersion: version, Content: content(id, obj, mask)})
		case e.Verb == observe.VerbGet && j.known[id].absent:
			found = append(found, recording.Object{Ref: id.ref(), ResourceVersion: version})
		}
		j.known[id].absent = false
	})
	isNew := len(found) > 0 || len(stale) > 0
	if e.Err != nil || e.Verb == observe.VerbDelete {
		isNew = j.fail(e, &stale)
	}
	if !isNew && e.Cached {
		return
	}
	if len(j.calls) == maxItems {
		j.omittedCalls++
		return
	}
	j.calls = append(j.calls, callOf(e, found, stale))
}

// isKnown reports whether the answer is an object without anything new. Most calls are such reads.
func (j *journal) isKnown(e *observe.Call) bool {
	obj := e.Returned()
	if obj == nil {
		return false
	}
	known := j.known[objectID{kindOf(e, obj), client.ObjectKeyFromObject(obj)}]
	return known != nil && *known == knownObject{version: obj.GetResourceVersion()}
}

// see updates what is known of an object that an answer has. It returns the version that was known before, and whether
// the answer is older.
func (j *journal) see(id objectID, version string, e *observe.Call) (before string, isOld bool) {
	known := j.known[id]
	if known == nil {
		j.known[id] = &knownObject{version: version, created: e.Verb == observe.VerbCreate}
		return "", false
	}
	before = known.version
	switch {
	case isNewer(before, version):
		return before, true
	case before == version && known.deleted && e.Cached:
		return "", true
	case before != version:
		known.deleted = false
	}
	known.version = version
	known.created = known.created && !e.Cached || e.Verb == observe.VerbCreate
	return before, false
}

// missing returns the objects that the reconciler has created, and that a list from a cache lacks. The list may not
// select them.
func (j *journal) missing(e *observe.Call) []recording.Stale {
	var stale []recording.Stale
	listed := map[types.NamespacedName]bool{}
	for id, known := range j.known {
		if !known.created || id.kind != e.Kind || e.Object.Namespace != "" && e.Object.Namespace != id.Namespace {
			continue
		}
		if len(listed) == 0 {
			listed[types.NamespacedName{}] = true
			e.EachObject(func(obj client.Object) { listed[client.ObjectKeyFromObject(obj)] = true })
		}
		if !listed[id.NamespacedName] {
			stale = append(stale, recording.Stale{Ref: id.ref(), Known: known.version})
		}
	}
	slices.SortFunc(stale, func(a, b recording.Stale) int { return cmp.Compare(a.String(), b.String()) })
	return stale
}

// fail notes a call that failed or deleted an object, and reports whether it says anything new.
func (j *journal) fail(e *observe.Call, stale *[]recording.Stale) (isNew bool) {
	id := objectID{e.Kind, e.Object}
	known := j.known[id]
	if e.Verb == observe.VerbDelete && e.Err == nil && !e.DryRun && known != nil {
		known.deleted, known.created = true, false
	}
	if e.Verb != observe.VerbGet || !apierrors.IsNotFound(e.Err) {
		return true
	}
	switch {
	case known == nil:
		j.known[id] = &knownObject{absent: true}
		return true
	case known.created && e.Cached:
		*stale = append(*stale, recording.Stale{Ref: id.ref(), Known: known.version})
	case known.absent:
		return false
	}
	known.absent = true
	return true
}

func (id objectID) ref() recording.Ref { return recording.Ref(refOf(id.kind, id.NamespacedName)) }

// kindOf returns the kind of an object in the answer of a call. Only objects of lists may lack it.
func kindOf(e *observe.Call, obj client.Object) schema.GroupVersionKind {
	if kind := obj.GetObjectKind().GroupVersionKind(); !kind.Empty() {
		return kind
	}
	return e.Kind
}

// content returns the masked content of an object, or nil if only its metadata is known.
func content(id objectID, obj client.Object, mask observe.Mask) json.RawMessage {
	if _, ok := obj.(*metav1.PartialObjectMetadata); ok {
		return nil
	}
	data, err := mask.Encode(id.kind, obj)
	if err != nil {
		return nil // it cannot be sent to an API server either
	}
	return data
}

// isNewer reports whether a resource version is newer than another one.
func isNewer(a, b string) bool { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) > 0 }

func callOf(e *observe.Call, found []recording.Object, stale []recording.Stale) recording.Call {
	call := recording.Call{
		At: time.Now(), Duration: e.Duration, Verb: e.Verb, Apply: e.Apply, DryRun: e.DryRun,
		Object: recording.Ref(refOf(e.Kind, e.Object)), GenerateName: e.GenerateName, Subresource: e.Subresource,
		Cached: e.Cached, Before: e.Before, After: e.After, NoOp: e.NoOp, Items: e.Items, Objects: found, Stale: stale,
	}
	if e.Err != nil {
		call.Error = &recording.Error{Text: textOf(e.Err)}
		if status := apierrors.APIStatus(nil); errors.As(e.Err, &status) {
			call.Error.Code, call.Error.Reason = int(status.Status().Code), string(status.Status().Reason)
		}
	}
	return call
}
