// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"trueup.dev/observe"
)

// Plan is what controllers would change.
type Plan struct {
	// Requests are what the plan was made for.
	Requests []Request `json:"requests"`
	// Changes are in the order in which objects are first written.
	Changes []Change `json:"changes,omitempty"`
	// Events are the events that would be recorded.
	Events []Event `json:"events,omitempty"`
	// External are the effects outside of Kubernetes that reconcilers have announced with [trueup.dev/external.Announce],
	// each text once.
	External []string `json:"external,omitempty"`
	// Errors are the errors of reconcilers, of the last reconcile of each request.
	Errors []Failure `json:"errors,omitempty"`
	// Unknown describes what the plan cannot know, for example because a dry run is forbidden.
	Unknown []string `json:"unknown,omitempty"`
	// Reconciles is the number of reconciles.
	Reconciles int `json:"reconciles"`
	// RequeueAfter is the shortest time after which a reconciler is called again, though it has nothing left to write. 0
	// if there is none.
	RequeueAfter time.Duration `json:"-"`
}

// MarshalJSON adds RequeueAfter as a text such as 1m30s.
func (p *Plan) MarshalJSON() ([]byte, error) {
	type plain Plan
	after := ""
	if p.RequeueAfter > 0 {
		after = p.RequeueAfter.String()
	}
	return json.Marshal(struct {
		*plain
		RequeueAfter string `json:"requeueAfter,omitempty"`
	}{(*plain)(p), after})
}

// HasChanges reports whether the plan changes anything: an object, or something outside of Kubernetes.
func (p *Plan) HasChanges() bool { return len(p.Changes) > 0 || len(p.External) > 0 }

// Action is what happens to an object.
type Action string

// Actions of a [Change].
const (
	Create Action = "create"
	Update Action = "update"
	// Replace deletes an object and creates another one of the same name.
	Replace Action = "replace"
	// Delete may take effect later, see [Change.Finalizers].
	Delete Action = "delete"
)

// Change is the change of one object.
type Change struct {
	Action     Action `json:"action"`
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	// Name is empty for an object whose name is generated.
	Name         string `json:"name,omitempty"`
	GenerateName string `json:"generateName,omitempty"`

	// Fields are the fields that differ, or of a new object those that the reconciler sets. It has 50 at most.
	Fields []observe.Change `json:"fields,omitempty"`
	// Finalizers delay the deletion. They are those that the plan leaves.
	Finalizers []string `json:"finalizers,omitempty"`
	// Collected is set if the garbage collector makes the change, because an owner is deleted.
	Collected bool `json:"collected,omitempty"`
}

// Event is an event that would be recorded.
type Event struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Type      string `json:"type"`
	Reason    string `json:"reason"`
	Message   string `json:"message"`
}

// Failure is the error of a reconciler.
type Failure struct {
	Request Request `json:"request"`
	Error   string  `json:"error"`
}

// changes compares the objects of the overlay with the objects of the cluster.
func (o *overlay) changes(mask observe.Mask) ([]Change, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var changes []Change
	for _, id := range o.order {
		before, after := o.loaded[id], o.server.Content(id.kind, id.key)
		if before == nil && after == nil {
			continue
		}
		change, changed, err := o.change(id, before, after, mask)
		if err != nil {
			return nil, err
		}
		if changed {
			changes = append(changes, change)
		}
	}
	return changes, nil
}

func (o *overlay) change(id objectID, before, after map[string]any, mask observe.Mask) (Change, bool, error) {
	c := Change{
		Kind: id.kind.Kind, APIVersion: id.kind.GroupVersion().String(), Namespace: id.key.Namespace, Name: id.key.Name,
		Collected: o.by[id] == memapiCollector,
	}
	was, is := &unstructured.Unstructured{Object: before}, &unstructured.Unstructured{Object: after}
	from, to := before, after
	switch {
	case before == nil:
		c.Action, from, to = Create, o.unset(id), o.sent[id]
		if prefix := is.GetGenerateName(); prefix != "" {
			c.Name, c.GenerateName = "", prefix
		}
	case after == nil:
		c.Action = Delete
		return c, true, nil
	case was.GetUID() != is.GetUID():
		c.Action = Replace
	case is.GetDeletionTimestamp() != nil && was.GetDeletionTimestamp() == nil:
		c.Action, c.Finalizers = Delete, is.GetFinalizers()
		return c, true, nil
	case same(before, after):
		return c, false, nil
	default:
		c.Action = Update
	}
	var err error
	c.Fields, err = o.compare(id.kind, from, to, mask)
	if _, ok := o.assumed[id]; ok { // the status is the work of others
		c.Fields = slices.DeleteFunc(c.Fields, func(f observe.Change) bool { return strings.HasPrefix(f.Path, "status.") })
	}
	return c, c.Action != Update || len(c.Fields) > 0, err
}

// unset returns a new object without any content.
func (o *overlay) unset(id objectID) map[string]any {
	metadata := map[string]any{"name": id.key.Name}
	if id.key.Namespace != "" {
		metadata["namespace"] = id.key.Namespace
	}
	if prefix, ok, _ := unstructured.NestedString(o.sent[id], "metadata", "generateName"); ok {
		metadata["generateName"] = prefix
	}
	return map[string]any{"metadata": metadata}
}

// compare returns the fields in which two states of an object differ.
func (o *overlay) compare(
	kind schema.GroupVersionKind, before, after map[string]any, mask observe.Mask,
) ([]observe.Change, error) {
	objects := make([]client.Object, 2)
	for i, content := range []map[string]any{before, after} {
		u := &unstructured.Unstructured{Object: stripped(content)}
		if u.Object == nil {
			u.Object = map[string]any{}
		}
		u.SetGroupVersionKind(kind)
		if i == 1 && u.GetName() == "" {
			u.SetName((&unstructured.Unstructured{Object: before}).GetName())
		}
		objects[i] = u
		if o.cluster.Scheme().Recognizes(kind) {
			typed, err := typedObject(o.cluster.Scheme(), u)
			if err != nil {
				return nil, fmt.Errorf("compare %s %s: %w", kind.Kind, u.GetName(), err)
			}
			objects[i] = typed
		}
	}
	return observe.Compare(kind.GroupKind(), objects[0], objects[1], mask), nil
}

// identify returns the kind and the name of an object.
func identify(scheme *runtime.Scheme, object runtime.Object) (objectID, error) {
	gvk, err := apiutil.GVKForObject(object, scheme)
	if err != nil {
		return objectID{}, err
	}
	id := objectID{kind: gvk}
	if named, ok := object.(metav1.Object); ok {
		id.key = client.ObjectKey{Namespace: named.GetNamespace(), Name: named.GetName()}
	}
	return id, nil
}

// count returns the number of changes with one of the actions.
func (p *Plan) count(actions ...Action) (n int) {
	for _, c := range p.Changes {
		if slices.Contains(actions, c.Action) {
			n++
		}
	}
	return n
}
