// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/world"
)

// State is the stored state of the API server and of the [Cloud] at one moment.
type State struct {
	world *world.World
	// failures are the errors of reads that cannot return one.
	failures *[]error
}

// Get reads an object by its namespace and name, and reports whether it exists. If the object cannot be read for
// another reason, for example because its type is not in the Scheme, Get returns false and the check of the state fails
// with that error.
func (s State) Get(obj client.Object) bool {
	err := s.world.User.Get(context.Background(), client.ObjectKeyFromObject(obj), obj)
	if client.IgnoreNotFound(err) != nil {
		*s.failures = append(*s.failures, fmt.Errorf("State.Get of %T %s: %w", obj, client.ObjectKeyFromObject(obj), err))
	}
	return err == nil
}

// List fills a list, in the order of namespaces and names.
func (s State) List(list client.ObjectList, opts ...client.ListOption) error {
	return s.world.User.List(context.Background(), list, opts...)
}

// Cloud returns the values of the external system, by key.
func (s State) Cloud() map[string]string { return maps.Clone(s.world.Cloud.Values) }

// desired returns the error of Scenario.Desired, or why it could not read the state.
func desired(check func(State) error, w *world.World) error {
	var failures []error
	err := check(State{world: w, failures: &failures})
	if len(failures) > 0 {
		return errors.Join(failures...)
	}
	return err
}
