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
