// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/memapi/kinds"
)

// Options say what a server is like.
type Options struct {
	// Registry knows the kinds that are served. Required. It may be shared by servers.
	Registry *kinds.Registry
	// Applier does server-side apply, and accounts for the fields that other requests manage. The default is that apply
	// requests are not supported.
	Applier Applier
	// Seed makes names and UIDs. Servers with the same seed give the same ones to the same objects.
	Seed uint64
	// Now is the clock. The default is time.Now.
	Now func() time.Time
}

// Applier merges applied configurations, and keeps the managed fields of objects. The objects it gets are not to be
// changed.
type Applier interface {
	// Apply returns what becomes of the live object, which is nil if there is none, when a manager applies a
	// configuration. It fails with a conflict.
	Apply(
		live client.Object, patch *unstructured.Unstructured, manager string, force bool, subresource string, now time.Time,
	) (client.Object, error)
	// Update returns the updated object with the managed fields it has after a request other than apply. The live object
	// is nil if the updated one is new.
	Update(live, updated client.Object, manager, subresource string, now time.Time) (client.Object, error)
}

// Server is a Kubernetes API server in memory. Its methods, and those of its clients, are for one goroutine at a time.
type Server struct {
	registry *kinds.Registry
	applier  Applier
	seed     uint64
	now      func() time.Time

	version   int64
	compacted int64 // the last version before which history is not served
	history   []Event
	tables    map[schema.GroupVersionKind]*table
	sorted    []*table                // by group, version and kind
	types     map[reflect.Type]*table // by Go type of objects and lists
	generated map[string]uint64       // by generateName
	watchers  []*watcher

	garbage        []Collection // as of garbageVersion
	garbageVersion int64
}

// New returns a server that has the namespaces a new cluster has, and nothing else. They are not in its history of
// events.
func New(opts Options) *Server {
	s := &Server{
		registry: opts.Registry, applier: opts.Applier, seed: opts.Seed, now: opts.Now,
		version: 1, history: make([]Event, 0, 32), tables: make(
			map[schema.GroupVersionKind]*table, 8,
		), types: make(map[reflect.Type]*table, 16),
	}
	if s.now == nil {
		s.now = time.Now
	}
	s.createNamespaces()
	return s
}

// Event is a change of an object. A server never changes one again, and neither may anybody else.
type Event struct {
	// Version is the resource version that the change has led to.
	Version int64
	// Type is Added, Modified or Deleted.
	Type watch.EventType
	// Kind and Key tell which object it is.
	Kind schema.GroupVersionKind
	Key  client.ObjectKey
	// Object is what became of it: for a deletion the last state, with the version of the deletion.
	Object client.Object
	// Old is what it was, or nil if it has just been created.
	Old client.Object

	request        request
	at             time.Time
	record, before *record // of Object and Old
}

// Version returns the resource version of the last change of any object. A new server has 1.
func (s *Server) Version() int64 {
	return s.version
}

// Events returns all changes after a version, in their order. The slice is not to be changed.
func (s *Server) Events(after int64) []Event {
	from, _ := slices.BinarySearchFunc(s.history, after+1, func(e Event, version int64) int {
		return cmp.Compare(e.Version, version)
	})
	return s.history[from:len(s.history):len(s.history)]
}

// Get returns the object that is stored, which is not to be changed, or nil if there is none. Its type is that of the
// scheme, without kind and API version, or *unstructured.Unstructured if the scheme has no type.
func (s *Server) Get(kind schema.GroupVersionKind, key client.ObjectKey) client.Object {
	if t := s.tables[kind]; t != nil {
		if r := t.objects[key]; r != nil {
			return r.object
		}
	}
	return nil
}

// List returns all objects of a kind that are stored, by namespace and name. They are not to be changed.
func (s *Server) List(kind schema.GroupVersionKind) []client.Object {
	t := s.tables[kind]
	if t == nil || len(t.sorted) == 0 {
		return nil
	}
	objects := make([]client.Object, len(t.sorted))
	for i, r := range t.sorted {
		objects[i] = r.object
	}
	return objects
}

// Kinds returns the kinds that there are objects of, sorted by group, version and kind.
func (s *Server) Kinds() []schema.GroupVersionKind {
	var found []schema.GroupVersionKind
	for _, t := range s.sorted {
		if len(t.sorted) > 0 {
			found = append(found, t.kind.GroupVersionKind)
		}
	}
	return found
}

func compareKinds(a, b schema.GroupVersionKind) int {
	return cmp.Or(
		strings.Compare(a.Group, b.Group), strings.Compare(a.Version, b.Version), strings.Compare(a.Kind, b.Kind),
	)
}

// Compact forgets the history before a version: lists and watches from older ones fail as expired. [Server.Events]
// still has it.
func (s *Server) Compact(version int64) {
	s.compacted = max(s.compacted, min(version, s.version))
}
