// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	// any more, it is applied again.
	GiveWayOnConflict ConflictPolicy = "GiveWay"
)

func (p ConflictPolicy) valid() bool {
	return p == "" || p == FailOnConflict || p == ForceOnConflict || p == GiveWayOnConflict
}

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

// policyAt returns the policy for a path with a leading dot.
func (r *ApplyingObjectManager[T]) policyAt(path string) ConflictPolicy {
	path = strings.TrimPrefix(path, ".")
	policy, longest := r.Conflicts, -1
	for at, p := range r.ConflictsAt {
		at = strings.TrimPrefix(at, ".")
		rest, ok := strings.CutPrefix(path, at)
		if ok && len(at) > longest && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			policy, longest = p, len(at)
		}
	}
	return cmp.Or(policy, FailOnConflict)
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
