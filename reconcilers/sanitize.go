// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"reflect"
	"strings"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/difference"
	"trueup.dev/internal/objects/nilcheck"
)

// Objects may contain secrets that users do not expect in logs. Values are therefore logged only if a Sanitize function
// selects them, or at verbosity 1 if the object is not a Secret.

// identify returns the kind and name of an object for logs.
func identify(obj client.Object) string {
	if nilcheck.IsNilPointer(obj) {
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

// describe returns the value to log for an object that is about to be created.
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

// diff returns keys and values to log for an object that is about to be updated. If the defaults of its kind are
// unknown, it lists fields that only the current object has separately, because they may be defaults.
func (r *UpdatingObjectManager[T]) diff(log logr.Logger, current, desired T, defaultsKnown bool) []any {
	if !log.Enabled() {
		return nil
	}
	if r.Sanitize != nil {
		before, after := r.Sanitize(current.DeepCopyObject().(T)), r.Sanitize(desired.DeepCopyObject().(T))
		return []any{"diff", difference.Lines(difference.Between(before, after))}
	}
	all := difference.Between(current, desired)
	found, unset := all, []difference.Difference(nil)
	if !defaultsKnown && current.GetUID() != "" {
		unset, found = partition(found, func(d difference.Difference) bool { return d.Removed })
	}
	logged := []any{"diff", difference.Paths(found)}
	if log.V(1).Enabled() && !isSecret(current) {
		logged = []any{"diff", difference.Lines(all)}
	}
	if len(unset) > 0 {
		logged = append(logged, "possiblyDefaults", difference.Paths(unset))
	}
	return logged
}

// partition splits a list into the items for which belongs returns true and the others.
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

// changes returns the difference between two values for logs: the changed paths, or at verbosity 1 the values.
func changes(log logr.Logger, before, after any) any {
	found := difference.Between(before, after)
	if log.V(1).Enabled() {
		return difference.Lines(found)
	}
	return difference.Paths(found)
}

// isSecret reports whether obj is a Secret, including unstructured Secrets and Go types derived from Secret.
func isSecret(obj client.Object) bool {
	return typeName(obj) == "Secret" || strings.Contains(reflect.TypeOf(obj).String(), "Secret")
}
