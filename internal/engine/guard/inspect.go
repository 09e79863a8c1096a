// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"encoding/json"
	"reflect"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/engine/step"
)

// Object identifies an object of a cluster. It is comparable.
type Object struct {
	cluster *Cluster
	Kind    schema.GroupKind
	types.NamespacedName
}

// Versions are the resource versions of objects.
type Versions map[Object]string

// Change is a write of an inspected request.
type Change struct {
	// Step is the path of the step that made the write.
	Step string
	// Verb describes the write in the third person, "updates" for example.
	Verb string
	Kind schema.GroupKind
	Key  types.NamespacedName
	// Object is the identity of the object. Subresource is "status", for example, or empty.
	Object      Object
	Subresource string
	// UID is the UID of the object, or empty if it is unknown.
	UID types.UID
	// Before is the object in the cache, Requested the object that was sent, After the object that the server returned.
	// All are nil if one is unknown. Requested is nil for server-side apply.
	Before, Requested, After client.Object
}

// inspection holds the records of an inspected request.
type inspection struct {
	// reads is nil if only changes are recorded.
	reads   Versions
	changes []Change
}

const (
	// MaxReads and maxChanges limit the records of one request.
	MaxReads   = 1000
	maxChanges = 32
)

// Inspect makes the journal record what the request reads from caches, and how its writes change objects. It must be
// called before the request starts. It costs memory and time, so inspect few requests only.
func (j *Journal) Inspect() { j.inspectsAll, j.inspectsChanges = true, true }

// InspectWrites is like Inspect, but the journal does not record reads. It costs nothing if the request writes nothing.
func (j *Journal) InspectWrites() { j.inspectsChanges = true }

// Reads returns the objects that the request read, or nil if its reads were not inspected.
func (j *Journal) Reads() Versions {
	if !j.inspectsReads() {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.recorded().reads
}

// recorded returns where the records are. j.mu must be locked.
func (j *Journal) recorded() *inspection {
	if j.inspection == nil {
		j.inspection = &inspection{}
		if j.inspectsAll {
			j.inspection.reads = Versions{}
		}
	}
	return j.inspection
}

// Changes returns the first changes of objects by the request. It is empty if the request was not inspected.
func (j *Journal) Changes() []Change {
	if !j.inspectsWrites() {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.inspection == nil {
		return nil
	}
	return j.inspection.changes
}

// State is the state of an object after a write. It is comparable: if two writes have the same state, the second
// one did not change the object.
type State struct {
	Version    string
	Generation int64 // 0 if unknown
	effect     effect
}

// Written calls yield for each object that the request has written. A nil Journal has none.
func (j *Journal) Written(yield func(Object, State) bool) {
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, w := range j.writes {
		if !w.read && !yield(Object{w.cluster, w.kind, w.key}, State{w.version, w.generation, w.effect}) {
			return
		}
	}
}

// Changed reports whether a cache holds another version of any of the objects, except those for which leaveOut returns
// true. Objects that no longer exist, or whose kind is no longer served, have changed.
func (v Versions) Changed(ctx context.Context, leaveOut func(Object) bool) bool {
	for object, version := range v {
		if leaveOut(object) {
			continue
		}
		for _, f := range object.cluster.formsOf(object.Kind) {
			current, ok := object.cluster.blank(f)
			if !ok {
				continue
			}
			switch err := object.cluster.client.Get(ctx, object.NamespacedName, current); {
			case apierrs.IsNotFound(err), meta.IsNoMatchError(err), err == nil && current.GetResourceVersion() != version:
				return true
			}
			break
		}
	}
	return false
}

// Object returns the identity of an object, or the zero Object on a nil Cluster or if the kind is unknown.
func (c *Cluster) Object(obj client.Object) Object {
	if c == nil {
		return Object{}
	}
	gvk, err := c.client.GroupVersionKindFor(obj)
	if err != nil {
		return Object{}
	}
	return Object{c, gvk.GroupKind(), client.ObjectKeyFromObject(obj)}
}

func (c *Cluster) inspectRead(ctx context.Context, obj client.Object, err error) {
	journal := c.journal(ctx)
	if err != nil || !journal.inspectsReads() {
		return
	}
	object := c.Object(obj)
	journal.mu.Lock()
	defer journal.mu.Unlock()
	if reads := journal.recorded().reads; object.cluster != nil && len(reads) < MaxReads {
		reads[object] = obj.GetResourceVersion()
	}
}

// inspectsReads and inspectsWrites need no lock, because both are decided before the request starts.
func (j *Journal) inspectsReads() bool  { return j != nil && j.inspectsAll }
func (j *Journal) inspectsWrites() bool { return j != nil && j.inspectsChanges }

func (c *Cluster) inspectList(ctx context.Context, list client.ObjectList, err error) {
	if err != nil || !c.journal(ctx).inspectsReads() {
		return
	}
	_ = meta.EachListItem(list, func(item runtime.Object) error {
		if obj, ok := item.(client.Object); ok {
			c.inspectRead(ctx, obj, nil)
		}
		return nil
	})
}

func notInspected(error) {}

// inspectWrite is called before a write and returns a function to call after it.
func (c *Cluster) inspectWrite(ctx context.Context, verb, subresource string, obj client.Object) func(err error) {
	journal := c.journal(ctx)
	if !journal.inspectsWrites() {
		return notInspected
	}
	gvk, err := c.client.GroupVersionKindFor(obj)
	if err != nil {
		return notInspected
	}
	if subresource != "" {
		verb += " " + subresource + " of"
	}
	change := Change{Step: step.Path(ctx), Verb: verb, Subresource: subresource, Kind: gvk.GroupKind()}
	if change.Before = c.cachedLike(ctx, change.Kind, obj); change.Before != nil {
		change.Requested = copied(obj)
	}
	return func(err error) {
		if err != nil {
			return
		}
		if change.Before != nil {
			change.After = copied(obj)
		}
		change.Key = client.ObjectKeyFromObject(obj) // the name may be generated
		change.Object = Object{c, change.Kind, change.Key}
		if change.UID = obj.GetUID(); change.UID == "" && change.Before != nil {
			change.UID = change.Before.GetUID()
		}
		journal.NoteChange(change)
	}
}

func copied(obj client.Object) client.Object { return obj.DeepCopyObject().(client.Object) }

// NoteChange records how a write changed an object, if the journal records changes.
func (j *Journal) NoteChange(change Change) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.inspectsChanges {
		return
	}
	if records := j.recorded(); len(records.changes) < maxChanges {
		records.changes = append(records.changes, change)
	}
}

// inspectApply is like inspectWrite, for a server-side apply. The object has the form that is read from a cache.
func (c *Cluster) inspectApply(
	ctx context.Context, subresource string, configuration runtime.ApplyConfiguration,
) func(err error) {
	if !c.journal(ctx).inspectsWrites() {
		return notInspected
	}
	sent := &metav1.PartialObjectMetadata{}
	if convert(configuration, sent) != nil {
		return notInspected
	}
	obj := client.Object(sent)
	for _, f := range c.formsOf(sent.GroupVersionKind().GroupKind()) {
		if blank, ok := c.blank(f); ok {
			blank.SetNamespace(sent.Namespace)
			blank.SetName(sent.Name)
			obj = blank
			break
		}
	}
	inspected := c.inspectWrite(ctx, "applies", subresource, obj)
	return func(err error) {
		if err == nil {
			err = convert(configuration, obj)
		}
		inspected(err)
	}
}

// convert copies from to the object into, by way of JSON.
func convert(from, into any) error {
	data, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// cachedLike returns the object from the cache, in the same Go type, or nil if it cannot be read.
func (c *Cluster) cachedLike(ctx context.Context, kind schema.GroupKind, obj client.Object) client.Object {
	for _, f := range c.formsOf(kind) {
		cached, ok := c.blank(f)
		if !ok || reflect.TypeOf(cached) != reflect.TypeOf(obj) || obj.GetName() == "" {
			continue // the API server generates a name
		}
		if c.client.Get(ctx, client.ObjectKeyFromObject(obj), cached) == nil {
			return cached
		}
	}
	return nil
}
