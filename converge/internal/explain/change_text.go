// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/phrase"
	"trueup.dev/converge/internal/state"
)

// mostChanges limits the changed fields in a line of a timeline.
const mostChanges = 2

// ContentOf returns an object as a map, without what the API server changes with each write.
func ContentOf(obj client.Object) map[string]any {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil
	}
	metadata, ok := content["metadata"].(map[string]any)
	if !ok {
		return content
	}
	// The content of an unstructured object is the content on the server.
	content, metadata = maps.Clone(content), maps.Clone(metadata)
	for _, field := range []string{"resourceVersion", "generation", "managedFields"} {
		delete(metadata, field)
	}
	content["metadata"] = metadata
	return content
}

// ChangeText describes a change. Times are only mentioned if nothing else has changed.
func ChangeText(before, after map[string]any, secret bool) string {
	d := fieldChanges{secret: secret}
	d.add("", before, after)
	for _, list := range [][]string{d.changes, d.times} {
		for i := range list {
			rest, removed := strings.CutPrefix(list[i], "no ")
			if list[i] = strings.TrimPrefix(rest, "metadata."); removed {
				list[i] = "no " + list[i]
			}
		}
	}
	switch {
	case len(d.changes) > 0:
		return ": " + enumerated(d.changes)
	case len(d.times) > 0:
		return ": nothing but " + enumerated(d.times)
	}
	return ""
}

// enumerated lists changes, as far as a line has room for.
func enumerated(changes []string) string {
	if more := len(changes) - mostChanges; more > 0 {
		return fmt.Sprintf("%s, %d more", strings.Join(changes[:mostChanges], ", "), more)
	}
	return strings.Join(changes, ", ")
}

// fieldChanges collects the differences of two objects.
type fieldChanges struct {
	// secret is set for objects whose data must not be printed.
	secret bool
	// changes are the changed fields, and times those whose value is a time.
	changes, times []string
}

func (d *fieldChanges) add(path string, before, after any) {
	switch {
	case reflect.DeepEqual(before, after):
	case isMap(before) && isMap(after):
		d.addMap(path, before.(map[string]any), after.(map[string]any))
	case isList(before) && (isList(after) || after == nil):
		list, _ := after.([]any)
		d.addList(path, before.([]any), list)
	case path == "metadata.deletionTimestamp":
		d.changes = append(d.changes, path+" is set")
	case isTimeValue(before) && isTimeValue(after):
		d.times = append(d.times, path)
	case after == nil:
		d.changes = append(d.changes, "no "+path)
	case d.secret && (strings.HasPrefix(path, "data") || strings.HasPrefix(path, "stringData")):
		d.changes = append(d.changes, path+" …") // logs must not contain secrets
	case isMap(after):
		d.addMap(path, nil, after.(map[string]any))
	case isList(after):
		d.addList(path, nil, after.([]any))
	default:
		d.changes = append(d.changes, path+" "+valueText(after))
	}
}

func (d *fieldChanges) addMap(path string, before, after map[string]any) {
	all := maps.Clone(after)
	maps.Copy(all, before)
	for _, key := range phrase.SortedKeys(all) {
		field := key
		switch {
		case !state.PlainKey(key):
			field = path + "[" + key + "]"
		case path != "":
			field = path + "." + key
		}
		d.add(field, before[key], after[key])
	}
}

// addList compares the items of a list by their type or name, if they have one, and otherwise by their index. The items
// of a list of strings are their own names.
func (d *fieldChanges) addList(path string, before, after []any) {
	if isStrings(before) && isStrings(after) {
		d.addStrings(path, before, after)
		return
	}
	field := keyOfItems(before, after)
	old, oldOrder := byKey(before, field)
	now, order := byKey(after, field)
	for _, k := range oldOrder {
		if _, ok := now[k]; !ok {
			order = append(order, k)
		}
	}
	for _, k := range order {
		if isCondition(old[k]) || isCondition(now[k]) {
			d.addCondition(path+"["+k+"]", old[k], now[k])
			continue
		}
		d.add(path+"["+k+"]", old[k], now[k])
	}
}

func (d *fieldChanges) addStrings(path string, before, after []any) {
	count := len(d.changes)
	for _, item := range after {
		if !slices.Contains(before, item) {
			d.changes = append(d.changes, path+" "+item.(string))
		}
	}
	for _, item := range before {
		if !slices.Contains(after, item) {
			d.changes = append(d.changes, "no "+path+" "+item.(string))
		}
	}
	if len(d.changes) == count {
		d.changes = append(d.changes, path+" in another order")
	}
}

// addCondition describes a condition by its status and reason. Where these have not changed, the fields that have.
func (d *fieldChanges) addCondition(path string, before, after any) {
	old, now := conditionText(before), conditionText(after)
	switch {
	case now == "":
		d.changes = append(d.changes, "no "+path)
	case old != now:
		d.changes = append(d.changes, path+" "+now)
	default:
		d.add(path, before, after)
	}
}

func conditionText(item any) string {
	condition, _ := item.(map[string]any)
	if condition == nil {
		return ""
	}
	text := fmt.Sprint(condition["status"])
	if reason, _ := condition["reason"].(string); reason != "" {
		text += " (" + reason + ")"
	}
	return text
}

// keyOfItems returns the field that identifies the items of a list, or "" for none.
func keyOfItems(lists ...[]any) string {
	for _, field := range []string{"type", "name", "uid"} {
		unique := true
		for _, list := range lists {
			seen := map[string]bool{}
			for _, item := range list {
				content, _ := item.(map[string]any)
				key, _ := content[field].(string)
				unique = unique && key != "" && !seen[key]
				seen[key] = true
			}
		}
		if unique {
			return field
		}
	}
	return ""
}

// byKey returns the items of a list by their key, and the keys in the order of the items.
func byKey(list []any, field string) (items map[string]any, order []string) {
	items = map[string]any{}
	for i, item := range list {
		key := strconv.Itoa(i)
		if content, ok := item.(map[string]any); ok && field != "" {
			key, _ = content[field].(string)
		}
		items[key], order = item, append(order, key)
	}
	return items, order
}

func isMap(value any) bool {
	_, ok := value.(map[string]any)
	return ok
}

func isList(value any) bool {
	_, ok := value.([]any)
	return ok
}

func isStrings(list []any) bool {
	return !slices.ContainsFunc(list, func(item any) bool {
		_, ok := item.(string)
		return !ok
	})
}

// isTimeValue reports whether a value is a time, or not set.
func isTimeValue(value any) bool {
	s, ok := value.(string)
	return value == nil || ok && state.IsTime(s)
}

// isCondition reports whether an item of a list is a condition.
func isCondition(item any) bool {
	content, ok := item.(map[string]any)
	if !ok {
		return false
	}
	for _, field := range []string{"type", "status"} {
		if _, ok := content[field].(string); !ok {
			return false
		}
	}
	return true
}

func valueText(value any) string {
	if s, ok := value.(string); ok {
		return strconv.Quote(s)
	}
	return fmt.Sprint(value)
}
