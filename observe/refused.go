// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// maxRefused limits the refused writes that are kept of one run.
const maxRefused = 100

// refusedWrite is a write for which [Call.Refused] is true.
type refusedWrite struct {
	kind   schema.GroupKind
	object types.NamespacedName
	path   []string
	err    error
}

// wrote handles a write of a run. A refused write of an object counts until a later write of the same object succeeds.
func (r *running) wrote(call *Call) {
	succeeded := call.Err == nil && !call.DryRun
	if !succeeded && !call.Refused() {
		return
	}
	kind := call.Kind.GroupKind()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refused = slices.DeleteFunc(r.refused, func(w refusedWrite) bool {
		return w.kind == kind && w.object == call.Object
	})
	if !succeeded && len(r.refused) < maxRefused {
		r.refused = append(r.refused, refusedWrite{kind, call.Object, call.Path, call.Err})
	}
}

// refusals returns the refused writes that count.
func (r *running) refusals() []Failure {
	r.mu.Lock()
	defer r.mu.Unlock()
	var failures []Failure
	for _, w := range r.refused {
		failures = append(failures, Failure{
			Step: strings.Join(w.path, "."), Object: strings.TrimSpace(w.kind.Kind + " " + nameOf(w.object)), Err: w.err,
		})
	}
	return failures
}

// nameOf returns the name of an object, with the namespace before it if there is one.
func nameOf(object types.NamespacedName) string {
	if object.Namespace == "" {
		return object.Name
	}
	return strings.TrimSuffix(object.Namespace+"/"+object.Name, "/")
}
