// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What is logged of objects. An object may hold secrets that its author did not think of when choosing a log level, so values are logged only
// when a Sanitize function says which, or an operator asks for verbosity 1 and the object is not a Secret.

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

// diff returns what to log of an object that is about to be updated.
func (r *UpdatingObjectManager[T]) diff(log logr.Logger, current, desired T) any {
	switch {
	case !log.Enabled():
		return nil
	case r.Sanitize != nil:
		return cmp.Diff(r.Sanitize(current.DeepCopyObject().(T)), r.Sanitize(desired.DeepCopyObject().(T)), IgnoreAllUnexported)
	case isSecret(current):
		return changedPaths(current, desired)
	default:
		return changes(log, current, desired)
	}
}

// changes returns what to log of the difference between two values: where they differ, and with verbosity 1 how.
func changes(log logr.Logger, before, after any) any {
	if log.V(1).Enabled() {
		return cmp.Diff(before, after, IgnoreAllUnexported)
	}
	return changedPaths(before, after)
}

func changedPaths(before, after any) []string {
	paths := pathReporter{}
	cmp.Equal(before, after, IgnoreAllUnexported, cmp.Reporter(&paths))
	return paths.found
}

// isSecret also knows Secrets that are unstructured, and duck types and copies of their Go type.
func isSecret(obj client.Object) bool {
	return typeName(obj) == "Secret" || strings.Contains(reflect.TypeOf(obj).String(), "Secret")
}

// maxLoggedPaths bounds the length of a log line.
const maxLoggedPaths = 20

// pathReporter collects the paths at which two values differ, and none of the values. Keys of maps are data too, but without them a difference
// in labels or in a ConfigMap would say nothing.
type pathReporter struct {
	path  cmp.Path
	found []string
}

func (r *pathReporter) PushStep(step cmp.PathStep) { r.path = append(r.path, step) }
func (r *pathReporter) PopStep()                   { r.path = r.path[:len(r.path)-1] }

func (r *pathReporter) Report(result cmp.Result) {
	if result.Equal() || len(r.found) > maxLoggedPaths {
		return
	}
	if len(r.found) == maxLoggedPaths {
		r.found = append(r.found, "…")
		return
	}
	var path strings.Builder
	for _, step := range r.path {
		switch step := step.(type) {
		case cmp.StructField:
			path.WriteString("." + step.Name())
		case cmp.SliceIndex:
			path.WriteString(step.String())
		case cmp.MapIndex:
			fmt.Fprintf(&path, "[%q]", fmt.Sprint(step.Key().Interface()))
		}
	}
	r.found = append(r.found, strings.TrimPrefix(path.String(), "."))
}
