// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"k8s.io/apimachinery/pkg/runtime"
	clientgotesting "k8s.io/client-go/testing"
)

type (
	// Action is a call that reactors receive. Its resource is the kind of the object, not the plural; the resource of a
	// list action is the kind of the list. Verbs are get, list, watch, create, update, patch, delete, delete-collection
	// and apply.
	Action = clientgotesting.Action
	// GetAction is a get.
	GetAction = clientgotesting.GetAction
	// ListAction is a list, or a watch.
	ListAction = clientgotesting.ListAction
	// CreateAction is a create. For a subresource, its object is the subresource.
	CreateAction = clientgotesting.CreateAction
	// UpdateAction is an update. For a subresource, its object is the subresource if the caller has passed one.
	UpdateAction = clientgotesting.UpdateAction
	// PatchAction is a patch. It has the patch, not the object.
	PatchAction = clientgotesting.PatchAction
	// DeleteAction is a delete.
	DeleteAction = clientgotesting.DeleteAction
	// DeleteCollectionAction is a delete of all objects of a kind that match selectors.
	DeleteCollectionAction = clientgotesting.DeleteCollectionAction
	// Reactor is a ReactionFunc for some actions.
	Reactor = clientgotesting.Reactor
	// ReactionFunc observes, changes, answers or fails calls, see [TestClient].
	ReactionFunc = clientgotesting.ReactionFunc
)

// objectAction is a create or an update.
type objectAction interface {
	Action
	GetObject() runtime.Object
}

// namedAction is an action with the name of its object: get, patch, delete, apply, and writes of bodies to
// subresources.
type namedAction interface {
	Action
	GetName() string
}

// bodyAction is the write of a body to a subresource. The object of the action is the body, which may not have the name
// of the object with the subresource.
type bodyAction struct {
	objectAction
	name string
}

// GetName returns the name of the object with the subresource.
func (a bodyAction) GetName() string { return a.name }

// DeepCopy returns a copy.
func (a bodyAction) DeepCopy() Action {
	a.objectAction = a.objectAction.DeepCopy().(objectAction)
	return a
}
