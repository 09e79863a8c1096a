// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"encoding/json"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The verbs of calls are the verbs of RBAC: get, list, create, update, patch, delete and deletecollection. A
// server-side apply is a patch with [Call.Apply].
const (
	VerbGet              = "get"
	VerbList             = "list"
	VerbCreate           = "create"
	VerbUpdate           = "update"
	VerbPatch            = "patch"
	VerbDelete           = "delete"
	VerbDeleteCollection = "deletecollection"
)

// Call is a finished call of a client.
type Call struct {
	// Run is the reconcile that made the call. It is nil for calls outside of reconciles.
	Run *Run
	// Path is the path of the step that made the call. It is empty for controllers without steps.
	Path []string
	// Verb is the verb of the call, as in RBAC.
	Verb string
	// Apply reports whether the call is a server-side apply.
	Apply bool
	// DryRun reports whether the call changes nothing on the server.
	DryRun bool
	// Kind and Object identify the object. The name is empty for lists, and the namespace for lists of all namespaces.
	Kind        schema.GroupVersionKind
	Object      types.NamespacedName
	Subresource string
	// GenerateName is the prefix of the name of an object that is created, if the server generates the name.
	GenerateName string
	// Before is the resource version that the cache had before a write, or that the object has that is sent, or "" if
	// both are unknown: the kind of a server-side apply may not be watched. After is the resource version in the answer.
	Before, After string
	// NoOp reports whether a write certainly changed nothing: the resource version is the same before and after. It is
	// false if Before is unknown, or older than the object on the server.
	NoOp bool
	// Dropped are the fields that the API server has not stored, because the schema of the kind does not have them. It is
	// empty if they are unknown, as for clients other than the client of the manager.
	Dropped []string
	// Items is the number of objects that a list returned.
	Items int
	// Cached reports whether the answer of a read comes from a cache.
	Cached   bool
	Err      error
	Duration time.Duration

	// before is the object in the cache before a write, and after the answer.
	before, after client.Object
	// requested is what was sent, if the writes of the run are inspected.
	requested client.Object
	// answer is the object, the list or the apply configuration with the answer, or nil.
	answer any
}

// IsWrite reports whether the call can change an object.
func (c *Call) IsWrite() bool { return c.Verb != VerbGet && c.Verb != VerbList }

// Refused reports whether the call is a write that failed for a reason that reconcilers do not expect. They expect
// conflicts, objects that do not exist, and objects that exist already. A dry run is not refused.
func (c *Call) Refused() bool {
	return c.IsWrite() && !c.DryRun && c.Err != nil &&
		!apierrors.IsConflict(c.Err) && !apierrors.IsNotFound(c.Err) && !apierrors.IsAlreadyExists(c.Err)
}

// Returned returns the object that was read or written, or nil if the answer is a list or empty. What applies to
// [Call.EachObject] applies to it, too.
func (c *Call) Returned() client.Object {
	if c.Err != nil || c.DryRun {
		return nil
	}
	obj, _ := c.answer.(client.Object)
	return obj
}

// EachObject calls f for each object in the answer: for the one that was read or written, or for the items of a list.
// It must only be called while a listener observes the call, and f must not keep or change what it gets. There are none
// if the call failed, was a dry run or a deletion, or has an answer of another kind, as subresources have.
func (c *Call) EachObject(f func(client.Object)) {
	if c.Err != nil || c.DryRun {
		return
	}
	switch answer := c.answer.(type) {
	case client.Object:
		f(answer)
	case client.ObjectList:
		_ = meta.EachListItem(answer, func(item runtime.Object) error { // f returns no error
			if obj, ok := item.(client.Object); ok {
				f(obj)
			}
			return nil
		})
	case runtime.ApplyConfiguration:
		obj := &unstructured.Unstructured{}
		if data, err := json.Marshal(answer); err == nil && json.Unmarshal(data, &obj.Object) == nil {
			f(obj)
		}
	}
}
