// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"reflect"
	"strings"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What is logged of objects. An object may hold secrets that its author did not think of when choosing a log level, so
// values are logged only when a Sanitize function says which, or an operator asks for verbosity 1 and the object is not
// a Secret.

// identify names an object in a log line.
func identify(obj client.Object) string {
	if isNil(obj) {
		return "<none>"
	}
	name := obj.GetName()
	if name == "" && obj.GetGenerateName() != "" {
		name = obj.GetGenerateName() + "*"
	}
	if ns := obj.GetNamespace(); ns != "" {
		name = ns + "/" + name
	}
	return typeName(obj) + " " + name
}

// describe returns what to log of an object that is about to be created.
func (r *UpdatingObjectManager[T]) describe(log logr.Logger, obj T) any {
	switch {
	case !log.Enabled():
		return nil
	case r.Sanitize != nil:
		return r.Sanitize(obj.DeepCopyObject().(T))
	case log.V(1).Enabled() && !isSecret(obj):
		return obj.DeepCopyObject()
	default:
		return identify(obj)
	}
}

// diff returns what to log, as keys and values, of an object that is about to be updated. Where the defaults of its
// kind are not known, it lists apart what may be one: what only the current object has.
func (r *UpdatingObjectManager[T]) diff(log logr.Logger, current, desired T, defaultsKnown bool) []any {
	if !log.Enabled() {
		return nil
	}
	if r.Sanitize != nil {
		return []any{
			"diff",
			cmp.Diff(r.Sanitize(current.DeepCopyObject().(T)), r.Sanitize(desired.DeepCopyObject().(T)), IgnoreAllUnexported),
		}
	}
	found := differences(current, desired)
	var unset []difference
	if !defaultsKnown && current.GetUID() != "" {
		unset, found = partition(found, func(d difference) bool { return d.removed })
	}
	logged := []any{"diff", paths(found)}
	if log.V(1).Enabled() && !isSecret(current) {
		logged = []any{"diff", cmp.Diff(current, desired, IgnoreAllUnexported)}
	}
	if len(unset) > 0 {
		logged = append(logged, "possiblyDefaults", paths(unset))
	}
	return logged
}

// partition splits a list into what belongs and what does not.
func partition[E any](all []E, belongs func(E) bool) (yes, no []E) {
	for _, e := range all {
		if belongs(e) {
			yes = append(yes, e)
		} else {
			no = append(no, e)
		}
	}
	return yes, no
}

// changes returns what to log of the difference between two values: where they differ, and with verbosity 1 how.
func changes(log logr.Logger, before, after any) any {
	if log.V(1).Enabled() {
		return cmp.Diff(before, after, IgnoreAllUnexported)
	}
	return changedPaths(before, after)
}

// isSecret also knows Secrets that are unstructured, and duck types and copies of their Go type.
func isSecret(obj client.Object) bool {
	return typeName(obj) == "Secret" || strings.Contains(reflect.TypeOf(obj).String(), "Secret")
}
