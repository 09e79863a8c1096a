// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"trueup.dev/internal/engine/step"
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
	if succeeded {
		r.forgive(kind, call.Object)
	} else {
		r.refuse(refusedWrite{kind, call.Object, call.Path, call.Err})
	}
}

// ReportRefused makes an error of a write count as refused, though reconcilers usually expect it, see [Call.Refused].
// It is for a reconciler that puts the error into a condition and returns none.
func ReportRefused(ctx context.Context, kind schema.GroupKind, object types.NamespacedName, err error) {
	if r := runningFrom(ctx); r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.refuse(refusedWrite{kind, object, slices.Clip(step.Names(ctx)), err})
	}
}

// refuse adds a refused write in place of an earlier one of the same object.
func (r *running) refuse(write refusedWrite) {
	r.forgive(write.kind, write.object)
	if rare := r.forRare(); len(rare.refused) < maxRefused {
		rare.refused = append(rare.refused, write)
	}
}

// forgive drops the refused writes of an object.
func (r *running) forgive(kind schema.GroupKind, object types.NamespacedName) {
	if r.rare == nil {
		return
	}
	r.rare.refused = slices.DeleteFunc(r.rare.refused, func(w refusedWrite) bool {
		return w.kind == kind && w.object == object
	})
}

// refusals returns the refused writes that count.
func (r *running) refusals() []Failure {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rare == nil {
		return nil
	}
	var failures []Failure
	for _, w := range r.rare.refused {
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
