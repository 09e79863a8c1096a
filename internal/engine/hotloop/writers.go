// SPDX-License-Identifier: Apache-2.0

package hotloop

import (
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"trueup.dev/internal/engine/ownership"
)

type managers = []metav1.ManagedFieldsEntry

// writers names the field managers of a field, before and after a write of this controller.
func writers(before, after managers, path string) (ours, other string) {
	mine := ownerOf(after, path, nil)
	if mine == nil {
		mine = newest(after, nil) // the controller has removed the field
	}
	theirs := ownerOf(before, path, mine)
	switch {
	case theirs != nil:
	case ownerOf(before, path, nil) != nil:
		return ownership.NameOf(mine), "another client with the same field manager"
	default:
		// The other writer has removed the field, or the cache strips managed fields.
		if theirs = newest(before, mine); theirs == nil {
			theirs = newest(after, mine)
		}
	}
	return ownership.NameOf(mine), ownership.NameOf(theirs)
}

// ownerOf returns the last manager besides one that owns a field.
func ownerOf(all managers, path string, besides *metav1.ManagedFieldsEntry) *metav1.ManagedFieldsEntry {
	segments := pathSegments(path)
	return lastOf(all, func(entry *metav1.ManagedFieldsEntry) bool {
		return !sameManager(entry, besides) && owns(entry, segments)
	})
}

func newest(all managers, besides *metav1.ManagedFieldsEntry) *metav1.ManagedFieldsEntry {
	return lastOf(all, func(entry *metav1.ManagedFieldsEntry) bool { return !sameManager(entry, besides) })
}

// lastOf returns the entry with the last time.
func lastOf(all managers, ok func(*metav1.ManagedFieldsEntry) bool) (last *metav1.ManagedFieldsEntry) {
	for i := range all {
		entry := &all[i]
		if ok(entry) && (last == nil || last.Time.Before(entry.Time)) {
			last = entry
		}
	}
	return last
}

func sameManager(a, b *metav1.ManagedFieldsEntry) bool { return b != nil && a.Manager == b.Manager }

// segment is a part of a path: a field, or the key of a map entry or of a list item.
type segment struct {
	name string
	item bool
}

func pathSegments(path string) (segments []segment) {
	for path != "" {
		if path[0] == '[' {
			key, rest, _ := strings.Cut(path[1:], "]")
			segments, path = append(segments, segment{key, true}), strings.TrimPrefix(rest, ".")
			continue
		}
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			end = len(path)
		}
		segments, path = append(segments, segment{name: path[:end]}), strings.TrimPrefix(path[end:], ".")
	}
	return segments
}

// owns reports whether a manager owns a field, or a field that contains it.
func owns(entry *metav1.ManagedFieldsEntry, path []segment) bool {
	if entry.FieldsV1 == nil {
		return false
	}
	fields := map[string]any{}
	if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
		return false
	}
	for _, s := range path {
		if len(fields) == 0 {
			return true // the manager owns the value as a whole
		}
		next, ok := s.in(fields)
		if !ok {
			return false
		}
		fields = next
	}
	return true
}

// in returns the fields below a segment.
func (s segment) in(fields map[string]any) (map[string]any, bool) {
	if below, ok := fields["f:"+s.name].(map[string]any); ok {
		return below, true
	}
	if !s.item {
		return nil, false
	}
	for key, value := range fields {
		below, ok := value.(map[string]any)
		if !ok {
			continue
		}
		kind, content, _ := strings.Cut(key, ":")
		switch kind {
		case "i":
			if content == s.name {
				return below, true
			}
		case "v":
			if text := ""; json.Unmarshal([]byte(content), &text) == nil && text == s.name {
				return below, true
			}
		case "k":
			keys := map[string]any{}
			if json.Unmarshal([]byte(content), &keys) != nil {
				continue
			}
			for _, value := range keys {
				if fmt.Sprint(value) == s.name {
					return below, true
				}
			}
		}
	}
	return nil, false
}
