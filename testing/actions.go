// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgotesting "k8s.io/client-go/testing"

	"trueup.dev/testing/internal/fakeapi"
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

// ApplyAction is a server-side apply.
type ApplyAction interface {
	Action
	GetName() string
	GetApplyConfiguration() runtime.ApplyConfiguration
}

// ApplyActionImpl is the [ApplyAction] that reactors receive.
type ApplyActionImpl struct {
	clientgotesting.ActionImpl
	Name               string
	ApplyConfiguration runtime.ApplyConfiguration
}

var _ ApplyAction = ApplyActionImpl{}

// GetName returns the name of the object.
func (a ApplyActionImpl) GetName() string { return a.Name }

// GetApplyConfiguration returns the applied configuration.
func (a ApplyActionImpl) GetApplyConfiguration() runtime.ApplyConfiguration {
	return a.ApplyConfiguration
}

// DeepCopy returns a copy. It panics if the apply configuration has no JSON form.
func (a ApplyActionImpl) DeepCopy() Action {
	a.ApplyConfiguration = must(fakeapi.CopyApplyConfiguration(a.ApplyConfiguration))
	return a
}

// NewApplyAction returns the action for an apply. It panics if the apply configuration has no JSON form.
func NewApplyAction(ac runtime.ApplyConfiguration) ApplyAction {
	return NewApplySubresourceAction(ac, "")
}

// NewApplySubresourceAction returns the action for an apply to a subresource. It panics if the apply configuration has
// no JSON form.
func NewApplySubresourceAction(ac runtime.ApplyConfiguration, subresource string) ApplyAction {
	return must(newApplyAction(ac, subresource))
}

func newApplyAction(ac runtime.ApplyConfiguration, subresource string) (ApplyActionImpl, error) {
	data, err := json.Marshal(ac)
	if err != nil {
		return ApplyActionImpl{}, fmt.Errorf("unable to marshal apply configuration: %w", err)
	}
	var applied metav1.PartialObjectMetadata
	if err := json.Unmarshal(data, &applied); err != nil {
		return ApplyActionImpl{}, fmt.Errorf("unable to read the kind and name of an apply configuration: %w", err)
	}
	return ApplyActionImpl{
		ActionImpl: clientgotesting.ActionImpl{
			Namespace:   applied.Namespace,
			Verb:        "apply",
			Resource:    resourceOf(applied.GroupVersionKind()),
			Subresource: subresource,
		},
		Name:               applied.Name,
		ApplyConfiguration: ac,
	}, nil
}
