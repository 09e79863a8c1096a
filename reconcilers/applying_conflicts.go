// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ConflictPolicy is what an [ApplyingObjectManager] does with a field that another client owns and has set to another
// value.
type ConflictPolicy string

const (
	// FailOnConflict returns a [FieldConflictError] and changes nothing.
	FailOnConflict ConflictPolicy = "Fail"
	// ForceOnConflict sets the field and takes it over: the other client no longer owns it.
	ForceOnConflict ConflictPolicy = "Force"
	// GiveWayOnConflict leaves the field to the other client, and applies the others. When the field has no other owner
	// any more, it is applied again. A client that is gone still owns its fields: use [AnnotationTakeBack].
	GiveWayOnConflict ConflictPolicy = "GiveWay"
)

func (p ConflictPolicy) valid() bool {
	return p == "" || p == FailOnConflict || p == ForceOnConflict || p == GiveWayOnConflict
}

// AnnotationTakeBack is an annotation of an object that an [ApplyingObjectManager] manages. Its value is a list of
// paths separated by commas, for example "spec.replicas", or "*" for all fields. The manager applies these fields, and
// everything below them, once as with [ForceOnConflict], and removes the annotation. If the desired object has the
// annotation, it stays. Use it to end a conflict, or when another client that owned a field is gone:
//
//	kubectl annotate deployment web trueup.dev/take-back=spec.replicas
const AnnotationTakeBack = "trueup.dev/take-back"

// FieldConflict is a field that two clients want to set to different values.
type FieldConflict struct {
	// Path is the path of the field, for example ".spec.replicas".
	Path string
	// Owner is the field manager that owns the field, with its operation, for example `"kubectl-edit" (Update)`.
	Owner string
}

// FieldConflictError is the error of an [ApplyingObjectManager] if other clients own fields that it is to set to other
// values.
type FieldConflictError struct {
	// Object is the kind, the namespace and the name of the object.
	Object string
	// FieldOwner is the field owner of the manager.
	FieldOwner string
	// Conflicts are sorted by path.
	Conflicts []FieldConflict
}

// Error names the fields and both owners of each.
func (e *FieldConflictError) Error() string {
	fields := make([]string, len(e.Conflicts))
	for i, c := range e.Conflicts {
		fields[i] = fmt.Sprintf("%s is owned by %s", c.Path, c.Owner)
	}
	return fmt.Sprintf("%s has fields that %q wants to set to other values: %s",
		e.Object, e.FieldOwner, strings.Join(fields, "; "))
}

// Status returns the error with [ReasonFieldConflict], by which it is reflected on the parent of a child.
func (e *FieldConflictError) Status() metav1.Status {
	return metav1.Status{Status: metav1.StatusFailure, Reason: ReasonFieldConflict, Message: e.Error()}
}

// policyAt returns the policy for a path with a leading dot.
func (r *ApplyingObjectManager[T]) policyAt(path string) ConflictPolicy {
	policy, longest := r.Conflicts, -1
	for at, p := range r.ConflictsAt {
		if at = strings.TrimPrefix(at, "."); len(at) > longest && isAtOrBelow(path, at) {
			policy, longest = p, len(at)
		}
	}
	return cmp.Or(policy, FailOnConflict)
}

// isAtOrBelow reports whether a path is another path or below it. Both may have a leading dot.
func isAtOrBelow(path, at string) bool {
	return isBelow(strings.TrimPrefix(path, "."), strings.TrimPrefix(at, "."))
}

// takeBack is the paths of an [AnnotationTakeBack].
type takeBack []string

// fieldsToTakeBack returns the paths of the annotation of an object, and whether the annotation is to be removed. An
// annotation that is desired stays.
func fieldsToTakeBack(document map[string]any, live client.Object) (paths takeBack, remove bool) {
	value, desired, _ := unstructured.NestedString(document, "metadata", "annotations", AnnotationTakeBack)
	if !desired {
		if value, remove = live.GetAnnotations()[AnnotationTakeBack]; !remove {
			return nil, false
		}
	}
	for path := range strings.SplitSeq(value, ",") {
		paths = append(paths, strings.TrimSpace(path))
	}
	return paths, remove
}

func (t takeBack) has(path string) bool {
	return slices.ContainsFunc(t, func(at string) bool { return at == "*" || at != "" && isAtOrBelow(path, at) })
}

// withoutRequest removes the annotation that asked to take fields back from an object.
func (a application[T]) withoutRequest(stored T, taken []string) (T, error) {
	a.log.Info("took fields back from other clients", "resource", identify(stored), "fields", slices.Compact(slices.Sorted(
		slices.Values(taken))), "requested", stored.GetAnnotations()[AnnotationTakeBack])
	// The tests protect a newer request. The apply has just changed the object, so other changes are likely.
	path := "/metadata/annotations/" + strings.ReplaceAll(AnnotationTakeBack, "/", "~1")
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": stored.GetUID()},
		{"op": "test", "path": path, "value": stored.GetAnnotations()[AnnotationTakeBack]},
		{"op": "remove", "path": path},
	})
	if err != nil {
		return stored, err
	}
	cleared := stored.DeepCopyObject().(T)
	err = a.config.Patch(a.ctx, cleared, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(a.owner))
	switch {
	case apierrs.IsInvalid(err): // a test failed; the reason says nothing about the child
		return stored, fmt.Errorf("the annotation %s has changed: %v", AnnotationTakeBack, err) //nolint:errorlint // see above
	case err != nil:
		return stored, fmt.Errorf("removing the annotation %s: %w", AnnotationTakeBack, err)
	}
	return cleared, nil
}

// fieldConflicts returns the conflicts that the API server reports.
func fieldConflicts(err error) (conflicts []FieldConflict) {
	status := apierrs.APIStatus(nil)
	if !errors.As(err, &status) || !apierrs.IsConflict(err) || status.Status().Details == nil {
		return nil
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Type == metav1.CauseTypeFieldManagerConflict {
			owner := strings.TrimPrefix(cause.Message, "conflict with ")
			conflicts = append(conflicts, FieldConflict{Path: cause.Field, Owner: owner})
		}
	}
	return sortedConflicts(conflicts)
}

func sortedConflicts(conflicts []FieldConflict) []FieldConflict {
	slices.SortFunc(conflicts, func(a, b FieldConflict) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Owner, b.Owner))
	})
	return conflicts
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}
