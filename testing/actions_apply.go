// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	clientgotesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/nilcheck"
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
	a.ApplyConfiguration = must(copyApplyConfiguration(a.ApplyConfiguration))
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

// copyApplyConfiguration returns a deep copy. The copy is unstructured if the Go type cannot read its own JSON form.
func copyApplyConfiguration(ac runtime.ApplyConfiguration) (runtime.ApplyConfiguration, error) {
	if nilcheck.IsNil(ac) {
		return ac, nil
	}
	data, err := json.Marshal(ac)
	if err != nil {
		return nil, fmt.Errorf("unable to marshal apply configuration: %w", err)
	}
	if _, ok := ac.(runtime.Unstructured); !ok {
		copied := reflect.New(reflect.TypeOf(ac))
		if err := json.Unmarshal(data, copied.Interface()); err == nil {
			if again, err := json.Marshal(copied.Interface()); err == nil && bytes.Equal(again, data) {
				return copied.Elem().Interface().(runtime.ApplyConfiguration), nil
			}
		}
	}
	u := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(data, &u.Object); err != nil {
		return nil, fmt.Errorf("unable to copy apply configuration: %w", err)
	}
	return client.ApplyConfigurationFromUnstructured(u), nil
}
