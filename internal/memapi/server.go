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

// Options configure a server.
type Options struct {
	// Registry has the kinds that are served. Required. Servers may share it.
	Registry *kinds.Registry
	// Applier implements server-side apply and tracks managed fields. Without one, apply requests fail.
	Applier Applier
	// Conversion is the webhook that converts custom objects whose definition has one. Without one, conversions fail.
	Conversion Conversion
	// Versions are the versions by group and kind in which [Event], [Server.Kinds] and [Server.Garbage] show custom kinds
	// with several versions. The default is the storage version or, if it is not served, another one.
	Versions map[schema.GroupKind]string
	// Admission decides about writes after the built-in rules for namespaces. None by default.
	Admission Admission
	// TrackFields makes the server keep the managed fields of all objects from their creation, as a real server does. It
	// makes writes slower. By default they are kept only for objects that have been applied.
	TrackFields bool
	// FinalizeDefinitions makes the server treat its CustomResourceDefinitions as a real one does. When one is deleted, it
	// gets a finalizer: the user of this package deletes its objects, and then removes the finalizer. Objects whose
	// definition no longer exists, or serves no version, stay in the storage, and are served again with the next
	// definition. By default definitions are objects like others. The scheme must have their type.
	FinalizeDefinitions bool
	// WithoutNamespaces makes the server start without the namespaces of a new cluster.
	WithoutNamespaces bool
	// Seed determines generated names and UIDs. Servers with the same seed generate the same ones for the same objects.
	Seed uint64
	// Now is the clock. The default is time.Now.
	Now func() time.Time
}

// Applier merges apply configurations and tracks managed fields. It must not change its arguments.
type Applier interface {
	// Apply returns the live object with a configuration applied by a manager. The live object is nil if it does not
	// exist. The error is a conflict if another manager owns a field and force is false. convert is nil for a kind with
	// one version.
	Apply(
		live client.Object, patch *unstructured.Unstructured, manager string, force bool, subresource string, now time.Time,
		convert kinds.Converter,
	) (client.Object, error)
	// Update returns the updated object with the managed fields after a request other than apply. The live object is nil
	// if the updated one is new.
	Update(
		live, updated client.Object, manager, subresource string, now time.Time, convert kinds.Converter,
	) (client.Object, error)
}

// Server is a Kubernetes API server in memory. Its methods, and the methods of its clients, must not be called
// concurrently.
type Server struct {
	registry   *kinds.Registry
	applier    Applier
	admission  Admission
	conversion Conversion
	shown      map[schema.GroupKind]string
	seed       uint64
	now        func() time.Time
	tracks     bool // see Options.TrackFields
	finalizes  bool // see Options.FinalizeDefinitions
	// unserved has the objects of kinds that are no longer served, see Options.FinalizeDefinitions.
	unserved map[schema.GroupKind]*shelf

	failedConversion error
	unknown          func(fields []string) error // see ValidateFields

	version   int64
	compacted int64 // history before this version is not served
	history   []Event
	tables    map[schema.GroupVersionKind]*table
	sorted    []*table                // of events, by group, version and kind
	types     map[reflect.Type]*table // by Go type of objects and lists
	generated map[string]uint64       // by generateName
	watchers  []*watcher

	garbage        []Collection // as of garbageVersion
	garbageVersion int64
}

// New returns a server with the namespaces of a new cluster, by default, and no other objects. The namespaces are not
// part of its events.
func New(opts Options) *Server {
	s := &Server{
		registry: opts.Registry, applier: opts.Applier, admission: opts.Admission, conversion: opts.Conversion,
		shown: opts.Versions, seed: opts.Seed, now: opts.Now, tracks: opts.TrackFields && opts.Applier != nil,
		finalizes: opts.FinalizeDefinitions, version: 1, history: make([]Event, 0, 32),
		tables: make(map[schema.GroupVersionKind]*table, 8),
		types:  make(map[reflect.Type]*table, 16),
	}
	if s.now == nil {
		s.now = time.Now
	}
	if t, err := s.table(namespaceKind); err == nil && !opts.WithoutNamespaces {
		s.createNamespaces(t)
	}
	return s
}

// Event is a change of an object. Events must not be changed.
type Event struct {
	// Version is the resource version after the change.
	Version int64
	// Type is Added, Modified or Deleted.
	Type watch.EventType
	// Kind and Key identify the object.
	Kind schema.GroupVersionKind
	Key  client.ObjectKey
	// Object is the object after the change. After a deletion it is the last state with the version of the deletion.
	Object client.Object
	// Old is the object before the change. Nil if it was created.
	Old client.Object
	// Client is the name of the client that made the change, whatever field manager its request names. The name of the
	// garbage collector is "kube-controller-manager".
	Client string

	request        request
	at             time.Time
	record, before *record // of Object and Old, in the version in which they are stored
}

// Version returns the resource version of the last change of any object. A new server has 1.
func (s *Server) Version() int64 {
	return s.version
}

// Events returns all changes after a version, in order. The slice must not be changed.
func (s *Server) Events(after int64) []Event {
	from, _ := slices.BinarySearchFunc(s.history, after+1, func(e Event, version int64) int {
		return cmp.Compare(e.Version, version)
	})
	return s.history[from:len(s.history):len(s.history)]
}

// Get returns the stored object, which must not be changed, or nil if it does not exist. Its type is the type of the
// scheme, without kind and API version, or *unstructured.Unstructured if the scheme has no type. An object that is
// stored in another version is converted.
func (s *Server) Get(kind schema.GroupVersionKind, key client.ObjectKey) client.Object {
	if t := s.tables[kind]; t != nil {
		if r := t.objects[key]; r != nil {
			return s.show(t, r).object
		}
	}
	return nil
}

// List returns all stored objects of a kind, sorted by namespace and name. They must not be changed.
func (s *Server) List(kind schema.GroupVersionKind) []client.Object {
	t := s.tables[kind]
	if t == nil || len(t.sorted) == 0 {
		return nil
	}
	objects := make([]client.Object, len(t.sorted))
	for i, r := range t.sorted {
		objects[i] = s.show(t, r).object
	}
	return objects
}

// Kinds returns the kinds that have objects, sorted by group, version and kind.
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

// Compact removes the history before a version for clients: lists and watches from older versions fail as expired.
// [Server.Events] still returns it.
func (s *Server) Compact(version int64) {
	s.compacted = max(s.compacted, min(version, s.version))
}

// Forget is like Compact, and also removes the history for [Server.Events], so that its memory can be used again. With
// Options.TrackFields nothing else needs the history.
func (s *Server) Forget(version int64) {
	s.Compact(version)
	s.history = slices.Clone(s.Events(s.compacted))
}
