// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"trueup.dev/internal/objects/nilcheck"
)

// Describer is a reconciler that describes itself: what it nests, reads and writes. All reconcilers of packages
// reconcilers and operator implement it. A reconciler that does not implement it appears with the name of its Go type.
type Describer interface {
	// DescribeTo adds the description to the node of the reconciler. It must not call an API.
	DescribeTo(n *Node)
}

// Kind identifies a kind of objects.
type Kind struct {
	Group   string `json:"group,omitempty"`
	Version string `json:"version,omitempty"`
	Kind    string `json:"kind"`
	// Unknown is the reason why the group and the version are unknown.
	Unknown string `json:"unknown,omitempty"`
}

// String returns the kind and the group, for example "Deployment.apps".
func (k Kind) String() string { return schema.GroupKind{Group: k.Group, Kind: k.Kind}.String() }

// Access is a permission that a reconciler needs.
type Access struct {
	Kind Kind `json:"kind"`
	// Subresource is empty for the object itself.
	Subresource string   `json:"subresource,omitempty"`
	Verbs       []string `json:"verbs"`
	// Config is the name of the reconciler that replaces the config. It is empty for the config of the root.
	Config string `json:"config,omitempty"`
}

// Node is a reconciler in a tree.
type Node struct {
	// Type is the Go type of the reconciler without type parameters, for example "reconcilers.Sequence".
	Type string `json:"type"`
	// Name is the name of the reconciler in logs and metrics. It is empty if the reconciler has none.
	Name string `json:"name,omitempty"`
	// Role is the position within the reconciler that contains it: a field or an index.
	Role string `json:"role,omitempty"`
	// Path is the names of the steps from the root to this reconciler, joined with dots. A "*" matches the step of any
	// item or iteration. Paths of several nodes are equal if a reconciler has no step of its own.
	Path string `json:"path"`

	// Resource is the reconciled kind. Only roots have it.
	Resource *Kind `json:"resource,omitempty"`
	// Owns are the kinds of children with an owner reference.
	Owns []Kind `json:"owns,omitempty"`
	// Tracks are the kinds whose tracked objects enqueue requests.
	Tracks []Kind `json:"tracks,omitempty"`
	// Watches are the kinds that are watched in another way.
	Watches []Kind `json:"watches,omitempty"`
	// Reads are the kinds that are read without a watch.
	Reads []Kind `json:"reads,omitempty"`
	// Writes are the kinds that are created, changed or deleted without an owner reference.
	Writes []Kind `json:"writes,omitempty"`
	// WritesStatus reports whether the status of the resource is written.
	WritesStatus bool `json:"writesStatus,omitempty"`
	// Finalizers are set on the resource.
	Finalizers []string `json:"finalizers,omitempty"`
	// Webhook is the URL path of a webhook.
	Webhook string `json:"webhook,omitempty"`
	// SetUp reports whether the tree is set up. Before that, watches of Setup functions are unknown. Only roots have it.
	SetUp bool `json:"setUp,omitempty"`
	// Access are the permissions that this reconciler needs, without the permissions of nested reconcilers.
	Access []Access `json:"access,omitempty"`
	// Nodes are the nested reconcilers, in order.
	Nodes []*Node `json:"nodes,omitempty"`

	reconciler any
	path       []string
	above      *Node
	root       *rootInfo
	config     string
}

// rootInfo is what all nodes of a tree share.
type rootInfo struct {
	scheme   *runtime.Scheme
	resource Kind
	watches  func(reconciler any) []Watch
}

// Watch is a watch that a reconciler registered during set-up.
type Watch struct {
	Object client.Object
	// Tracked reports whether events enqueue the resources that track the object.
	Tracked bool
}

func newNode(reconciler any, above *Node, role string, scheme *runtime.Scheme) *Node {
	n := &Node{Type: typeOf(reconciler), Role: role, reconciler: reconciler, above: above}
	if above != nil {
		n.path, n.root, n.config = slices.Clip(above.path), above.root, above.config
	} else {
		n.root = &rootInfo{scheme: scheme, watches: func(any) []Watch { return nil }}
	}
	return n
}

// describe fills the node. It does not describe a reconciler again that contains itself.
func (n *Node) describe() {
	describer, ok := n.reconciler.(Describer)
	for above := n.above; above != nil && ok; above = above.above {
		ok = !same(above.reconciler, n.reconciler)
	}
	if ok {
		describer.DescribeTo(n)
	}
	n.Path = strings.Join(n.path, ".")
	by := n.reconciler
	if n.Resource != nil {
		by = nil // the root
	}
	for _, watch := range n.root.watches(by) {
		switch kind := n.kind(watch.Object); {
		case !watch.Tracked:
			add(&n.Watches, kind)
		case !slices.Contains(n.Owns, kind):
			add(&n.Tracks, kind)
		}
		n.access(n.kind(watch.Object), "", n.config, "get", "list", "watch")
	}
}

// Root describes a root reconciler of a kind. A nil scheme is unknown. watches returns the watches that a reconciler of
// the tree registered during set-up. It is nil before that.
func (n *Node) Root(scheme *runtime.Scheme, resource client.Object, watches func(reconciler any) []Watch) {
	if scheme != nil {
		n.root.scheme = scheme
	}
	if watches != nil {
		n.root.watches, n.SetUp = watches, true
	}
	kind := n.kind(resource)
	n.Resource, n.root.resource = &kind, kind
}

// Step sets the name of the reconciler, which is also the name of its step.
func (n *Node) Step(name string) {
	n.Name = name
	n.path = append(slices.Clip(n.path), name)
}

// Nest adds a nested reconciler. Role is the name of the field that contains it. Nest does nothing for nil.
func (n *Node) Nest(role string, reconciler any) { n.nest(n.path, n.config, role, reconciler) }

// NestStep is like Nest for a nested reconciler that runs in a step with the name of its role. The role "*" stands for
// items and iterations.
func (n *Node) NestStep(role string, reconciler any) {
	n.nest(append(slices.Clip(n.path), role), n.config, role, reconciler)
}

// NestWithConfig is like Nest for a nested reconciler that accesses the API with another config than the root.
func (n *Node) NestWithConfig(role string, reconciler any) { n.nest(n.path, n.Name, role, reconciler) }

func (n *Node) nest(path []string, config, role string, reconciler any) {
	if nilcheck.IsNil(reconciler) {
		return
	}
	nested := newNode(reconciler, n, role, nil)
	nested.path, nested.config = slices.Clip(path), config
	nested.describe()
	n.Nodes = append(n.Nodes, nested)
}

// ReadsResource adds the permissions to watch the reconciled resource.
func (n *Node) ReadsResource() { n.access(n.root.resource, "", "", "get", "list", "watch") }

// PatchesResource adds the permissions to watch the reconciled resource and to patch its metadata.
func (n *Node) PatchesResource() { n.access(n.root.resource, "", "", "get", "list", "watch", "patch") }

// Status describes that the status of the resource is written.
func (n *Node) Status() {
	n.WritesStatus = true
	n.access(n.root.resource, "status", "", "get", "update", "patch")
}

// Finalizer describes that a finalizer is set on the resource. It does nothing for an empty finalizer.
func (n *Node) Finalizer(name string) {
	if name == "" || slices.Contains(n.Finalizers, name) {
		return
	}
	n.Finalizers = append(n.Finalizers, name)
	n.PatchesResource()
	n.access(n.root.resource, "finalizers", "", "update")
}

// OwnsKind describes that objects are created, changed and deleted, with the resource as their owner.
func (n *Node) OwnsKind(obj client.Object) {
	kind := n.kind(obj)
	add(&n.Owns, kind)
	n.access(kind, "", n.config, "get", "list", "watch", "create", "update", "patch", "delete")
	n.access(n.root.resource, "finalizers", "", "update")
}

// WritesKind describes that objects are created, changed and deleted, without an owner reference.
func (n *Node) WritesKind(obj client.Object) {
	kind := n.kind(obj)
	add(&n.Writes, kind)
	n.access(kind, "", n.config, "get", "list", "watch", "create", "update", "patch", "delete")
}

// ReadsKind describes that objects are read. The client of a manager lists and watches each kind that it reads.
func (n *Node) ReadsKind(obj client.Object) {
	kind := n.kind(obj)
	add(&n.Reads, kind)
	n.access(kind, "", n.config, "get", "list", "watch")
}

// Needs adds permissions for objects of a kind. An empty subresource stands for the object itself.
func (n *Node) Needs(obj client.Object, subresource string, verbs ...string) {
	kind := n.kind(obj)
	if slices.ContainsFunc(verbs, func(verb string) bool { return verb != "get" && verb != "list" && verb != "watch" }) {
		add(&n.Writes, kind)
	} else {
		add(&n.Reads, kind)
	}
	n.access(kind, subresource, n.config, verbs...)
}

// Events describes that events about the resource are recorded.
func (n *Node) Events() {
	n.access(Kind{Version: "v1", Kind: "Event"}, "", "", "create", "patch")
}

func (n *Node) access(kind Kind, subresource, config string, verbs ...string) {
	i := slices.IndexFunc(n.Access, func(a Access) bool {
		return a.Kind == kind && a.Subresource == subresource && a.Config == config
	})
	if i < 0 {
		i = len(n.Access)
		n.Access = append(n.Access, Access{Kind: kind, Subresource: subresource, Config: config})
	}
	for _, verb := range verbs {
		add(&n.Access[i].Verbs, verb)
	}
}

// kind returns the kind of an object.
func (n *Node) kind(obj client.Object) Kind {
	if nilcheck.IsNil(obj) {
		return Kind{Kind: "?", Unknown: "no object is given"}
	}
	gvk, err := apiutil.GVKForObject(obj, n.root.scheme)
	if err != nil {
		if gvk = obj.GetObjectKind().GroupVersionKind(); gvk.Empty() {
			_, name, _ := strings.Cut(typeOf(obj), ".")
			return Kind{Kind: name, Unknown: err.Error()}
		}
	}
	return Kind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind}
}

func add[T comparable](list *[]T, item T) {
	if !slices.Contains(*list, item) {
		*list = append(*list, item)
	}
}

// same reports whether two reconcilers are identical.
func same(a, b any) bool {
	return reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.TypeOf(a).Kind() == reflect.Pointer && a == b
}

// typeOf returns the package and the name of a Go type, without type parameters.
func typeOf(value any) string {
	t := reflect.TypeOf(value)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	name, _, _ := strings.Cut(t.String(), "[")
	return name
}
