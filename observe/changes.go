// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/difference"
)

// masked replaces a value that must not be shown.
const masked = "•••"

// maxChanges and maxValue limit the size of the changes of one event: their number, and the bytes of each value.
const (
	maxChanges = 50
	maxValue   = 256
)

// Mask decides which values are shown. The values of Secrets are never shown. The zero Mask shows all others.
type Mask struct {
	// Paths are the paths of fields whose values are not shown, with all fields below them and all values that contain
	// them, for example "spec.password", "spec.template.spec.containers[app].env" or "data[password]", which is the same
	// as "data.password". They apply to all kinds.
	Paths []string
	// All masks all values.
	All bool
}

func (m Mask) hides(path string) bool {
	if m.All {
		return true
	}
	path = fields.Replace(path) + "."
	for _, p := range m.Paths {
		p = fields.Replace(p) + "."
		if strings.HasPrefix(path, p) || strings.HasPrefix(p, path) {
			return true
		}
	}
	return false
}

// fields replaces the separators of a path by dots.
var fields = strings.NewReplacer("[", ".", "]", "", ":", ".")

// Changes returns what a write changed, compared to the object in the cache. It is empty for other calls, and if the
// object was not in the cache. It returns at most 50 changes and at most 256 bytes of each value. Each call computes
// them.
func (c *Call) Changes(mask Mask) []Change {
	return changes(c.Kind.GroupKind(), c.before, c.after, mask)
}

// Changes returns what the event changed. It is empty if the cause is not an update. It returns at most 50 changes and
// at most 256 bytes of each value. Each call computes them.
func (c *Cause) Changes(mask Mask) []Change {
	return changes(c.Kind.GroupKind(), c.before, c.after, mask)
}

// Parts returns which parts of the object the event changed: the first elements of the changed paths, such as spec,
// status or data, and for metadata labels, annotations, finalizers, ownerReferences or deletionTimestamp.
func (c *Cause) Parts() []string {
	var parts []string
	for _, change := range c.Changes(Mask{All: true}) {
		part := strings.TrimPrefix(change.Path, "metadata.")
		if end := strings.IndexAny(part, ".[:"); end >= 0 {
			part = part[:end]
		}
		if len(parts) == 0 || parts[len(parts)-1] != part { // changes of one part follow each other
			parts = append(parts, part)
		}
	}
	return parts
}

// By returns the field manager that wrote the object of the event last, with the subresource if there is one, for
// example "kubectl-edit" or "kube-controller-manager (status)". It is "" if it is unknown. Managed fields have times in
// seconds, so it may be one of several managers of the same second.
func (c *Cause) By() string {
	if c.after == nil {
		return ""
	}
	var last metav1.ManagedFieldsEntry
	for _, entry := range c.after.GetManagedFields() {
		if entry.Time != nil && (last.Time == nil || !entry.Time.Before(last.Time)) {
			last = entry
		}
	}
	if last.Subresource != "" {
		return last.Manager + " (" + last.Subresource + ")"
	}
	return last.Manager
}

// Compare returns how two states of an object differ, which must have the same Go type. It returns at most 50 changes
// and at most 256 bytes of each value.
func Compare(kind schema.GroupKind, before, after client.Object, mask Mask) []Change {
	return changes(kind, before, after, mask)
}

func changes(kind schema.GroupKind, before, after client.Object, mask Mask) []Change {
	if before == nil || after == nil || reflect.TypeOf(before) != reflect.TypeOf(after) {
		return nil
	}
	mask.All = mask.All || isSecret(kind, before)
	var found []Change
	for _, d := range difference.Between(before, after) {
		if isBookkeeping(d.Path) {
			continue
		}
		if len(found) == maxChanges {
			break
		}
		change := Change{Path: d.Path}
		before, after := d.Shown()
		if mask.hides(d.Field()) {
			change.Before, change.After = hidden(before), hidden(after)
		} else {
			change.Before, change.After = difference.Text(before, maxValue), difference.Text(after, maxValue)
		}
		found = append(found, change)
	}
	return found
}

// isSecret reports whether an object is a Secret. Its kind may be unknown: then the object says what it is.
func isSecret(kind schema.GroupKind, obj client.Object) bool {
	if _, ok := obj.(*corev1.Secret); ok {
		return true
	}
	secret := schema.GroupKind{Kind: "Secret"}
	return kind == secret || obj.GetObjectKind().GroupVersionKind().GroupKind() == secret
}

// isBookkeeping reports whether a field changes with each write, or only describes the Go value.
func isBookkeeping(path string) bool {
	switch path {
	case "metadata.resourceVersion", "metadata.generation", "apiVersion", "kind":
		return true
	}
	return strings.HasPrefix(path, "metadata.managedFields")
}

func hidden(value any) string {
	if value == nil {
		return ""
	}
	return masked
}
