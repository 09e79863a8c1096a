// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"k8s.io/apimachinery/pkg/runtime"
	clientgotesting "k8s.io/client-go/testing"
)

type (
	// Action is a call that reactors are told of. Its resource is the kind of the object, not the plural; that of a list
	// action is the kind of the list. Verbs are get, list, watch, create, update, patch, delete, delete-collection and
	// apply.
	Action = clientgotesting.Action
	// GetAction is a get.
	GetAction = clientgotesting.GetAction
	// ListAction is a list, or a watch.
	ListAction = clientgotesting.ListAction
	// CreateAction is a create. That of a sub resource has the sub resource for an object.
	CreateAction = clientgotesting.CreateAction
	// UpdateAction is an update. That of a sub resource has the sub resource for an object, if it was given apart.
	UpdateAction = clientgotesting.UpdateAction
	// PatchAction is a patch. It has what is sent, not the object.
	PatchAction = clientgotesting.PatchAction
	// DeleteAction is a delete.
	DeleteAction = clientgotesting.DeleteAction
	// DeleteCollectionAction is a delete of all objects of a kind that selectors match.
	DeleteCollectionAction = clientgotesting.DeleteCollectionAction
	// Reactor is a ReactionFunc for some actions.
	Reactor = clientgotesting.Reactor
	// ReactionFunc sees, changes, answers or fails calls, see [TestClient].
	ReactionFunc = clientgotesting.ReactionFunc
)

// objectAction is a create or an update.
type objectAction interface {
	Action
	GetObject() runtime.Object
}

// namedAction is an action that has the name of the object it is about: get, patch, delete, apply, and the writes of
// bodies to sub resources.
type namedAction interface {
	Action
	GetName() string
}

// bodyAction is the write of a body to a sub resource. The object of the action is the body, which need not have the
// name of the object that has the sub resource.
type bodyAction struct {
	objectAction
	name string
}

// GetName returns the name of the object that has the sub resource.
func (a bodyAction) GetName() string { return a.name }

// DeepCopy returns a copy.
func (a bodyAction) DeepCopy() Action {
	a.objectAction = a.objectAction.DeepCopy().(objectAction)
	return a
}
