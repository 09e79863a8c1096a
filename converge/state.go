// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// State is what there is at a moment.
type State struct{ run *run }

// Get fills an object by its namespace and name, and returns false if there is none.
func (s State) Get(obj client.Object) bool {
	return s.run.user.Get(context.Background(), client.ObjectKeyFromObject(obj), obj) == nil
}

// List fills a list, in the order of namespaces and names.
func (s State) List(list client.ObjectList, opts ...client.ListOption) error {
	return s.run.user.List(context.Background(), list, opts...)
}

// Cloud returns what the system outside has, by key.
func (s State) Cloud() map[string]string { return maps.Clone(s.run.cloud.values) }
