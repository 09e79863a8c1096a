// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"reflect"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/step"
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
	// Before is the object in the cache, After the object that the server returned. Both are nil if either is unknown.
	Before, After client.Object
}

// inspection holds the records of an inspected request.
type inspection struct {
	reads   Versions
	changes []Change
}

const (
	// MaxReads and maxChanges limit the records of one request.
	MaxReads   = 1000
	maxChanges = 8
)

// Inspect makes the journal record what the request reads from caches, and how its writes change objects. It must be
// called before the request starts. It costs memory and time, so inspect few requests only.
func (j *Journal) Inspect() { j.inspection = &inspection{reads: Versions{}} }

// Reads returns the objects that the request read, or nil if it was not inspected.
func (j *Journal) Reads() Versions {
	if j.inspection == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.inspection.reads
}

// Changes returns the first changes of objects by the request. It is empty if the request was not inspected.
func (j *Journal) Changes() []Change {
	if j.inspection == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.inspection.changes
}

// State is the state of an object after a write. It is comparable: if two writes have the same state, the second
// one did not change the object.
type State struct {
	Version    string
	Generation int64 // 0 if unknown
	effect     effect
}

// Written calls yield for each object that the request has written.
func (j *Journal) Written(yield func(Object, State) bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, w := range j.writes {
		if !w.read && !yield(Object{w.cluster, w.kind, w.key}, State{w.version, w.generation, w.effect}) {
			return
		}
	}
}

// Changed reports whether a cache holds another version of any of the objects, except those for which leaveOut returns
// true. Objects that no longer exist have changed.
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
			case apierrs.IsNotFound(err), err == nil && current.GetResourceVersion() != version:
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

func (c *Cluster) inspectionOf(ctx context.Context) (*Journal, *inspection) {
	if journal := c.journal(ctx); journal != nil && journal.inspection != nil {
		return journal, journal.inspection
	}
	return nil, nil
}

func (c *Cluster) inspectRead(ctx context.Context, obj client.Object, err error) {
	journal, inspection := c.inspectionOf(ctx)
	if inspection == nil || err != nil {
		return
	}
	object := c.Object(obj)
	journal.mu.Lock()
	defer journal.mu.Unlock()
	if object.cluster != nil && len(inspection.reads) < MaxReads {
		inspection.reads[object] = obj.GetResourceVersion()
	}
}

func (c *Cluster) inspectList(ctx context.Context, list client.ObjectList, err error) {
	if _, inspection := c.inspectionOf(ctx); inspection == nil || err != nil {
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
func (c *Cluster) inspectWrite(ctx context.Context, verb string, obj client.Object) func(err error) {
	journal, inspection := c.inspectionOf(ctx)
	if inspection == nil {
		return notInspected
	}
	gvk, err := c.client.GroupVersionKindFor(obj)
	if err != nil {
		return notInspected
	}
	change := Change{Step: step.Path(ctx), Verb: verb, Kind: gvk.GroupKind(), Key: client.ObjectKeyFromObject(obj)}
	change.Before = c.cachedLike(ctx, change.Kind, obj)
	return func(err error) {
		if err != nil {
			return
		}
		if change.Before != nil {
			change.After = obj.DeepCopyObject().(client.Object)
		}
		change.Key = client.ObjectKeyFromObject(obj) // the name may be generated
		journal.mu.Lock()
		defer journal.mu.Unlock()
		if len(inspection.changes) < maxChanges {
			inspection.changes = append(inspection.changes, change)
		}
	}
}

// cachedLike returns the object from the cache, in the same Go type, or nil if it cannot be read.
func (c *Cluster) cachedLike(ctx context.Context, kind schema.GroupKind, obj client.Object) client.Object {
	for _, f := range c.formsOf(kind) {
		cached, ok := c.blank(f)
		if !ok || reflect.TypeOf(cached) != reflect.TypeOf(obj) {
			continue
		}
		if c.client.Get(ctx, client.ObjectKeyFromObject(obj), cached) == nil {
			return cached
		}
	}
	return nil
}
