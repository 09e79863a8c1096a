// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// difference is one difference between two values. It contains no values except the status and reason of conditions.
type difference struct {
	// path consists of JSON field names. List items are identified by their name, conditions by their type, other items
	// by their index.
	path string
	// removed reports whether only the first value is set.
	removed bool
}

func (d difference) String() string { return d.path }

// differences returns the differences between two values of the same Go type.
func differences(before, after any) []difference {
	var found differ
	found.values("", content(before), content(after))
	return found
}

func content(value any) reflect.Value {
	if u, ok := value.(runtime.Unstructured); ok {
		return reflect.ValueOf(u.UnstructuredContent())
	}
	return reflect.ValueOf(value)
}

type differ []difference

func (d *differ) add(path string, before, after reflect.Value) {
	removed := !after.IsValid() || isUnset(after) && !isUnset(before)
	*d = append(*d, difference{path: strings.TrimPrefix(path, "."), removed: removed})
}

// values compares two values. An invalid value is missing.
func (d *differ) values(path string, before, after reflect.Value) {
	before, after = dereferenced(before), dereferenced(after)
	if !before.IsValid() || !after.IsValid() || before.Type() != after.Type() {
		if before.IsValid() || after.IsValid() {
			d.add(path, before, after)
		}
		return
	}
	if before.CanInterface() && same(before.Interface(), after.Interface()) {
		return
	}
	found := len(*d)
	switch {
	case isLeaf(before.Type()):
	case before.Kind() == reflect.Struct:
		d.fields(path, before, after)
	case before.Kind() == reflect.Map:
		d.entries(path, before, after)
	case before.Kind() == reflect.Slice &&
		(before.Len() > 0 && after.Len() > 0 || hasConditions(before) || hasConditions(after)):
		d.items(path, before, after)
	}
	if found == len(*d) {
		d.add(path, before, after)
	}
}

func (d *differ) fields(path string, before, after reflect.Value) {
	for i := range before.NumField() {
		field := before.Type().Field(i)
		if !field.IsExported() {
			continue
		}
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-":
			continue
		case name == "" && (options == "inline" || field.Anonymous):
			d.values(path, before.Field(i), after.Field(i))
			continue
		case name == "":
			name = field.Name
		}
		d.values(path+"."+name, before.Field(i), after.Field(i))
	}
}

func (d *differ) entries(path string, before, after reflect.Value) {
	for _, entry := range sortedEntries(before, after) {
		key := entry.key
		if before.Type().Elem().Kind() == reflect.Interface && !strings.ContainsAny(key, "./[]") {
			d.values(path+"."+key, entry.before, entry.after) // an object of unstructured content
			continue
		}
		d.values(path+"["+key+"]", entry.before, entry.after)
	}
}

// items compares list items by name. If items have no unique names, it compares them by index.
func (d *differ) items(path string, before, after reflect.Value) {
	names, named := itemNames(before)
	afterNames, afterNamed := itemNames(after)
	if !named || !afterNamed {
		for i := range max(before.Len(), after.Len()) {
			d.values(path+"["+strconv.Itoa(i)+"]", itemAt(before, i), itemAt(after, i))
		}
		return
	}
	found := len(*d)
	places := map[string]int{}
	for i, name := range afterNames {
		places[name] = i
	}
	kept := map[string]bool{}
	compare := func(name string, before, after reflect.Value) {
		if at := path + "[" + name + "]"; !d.condition(at, before, after) {
			d.values(at, before, after)
		}
	}
	for i, name := range names {
		kept[name] = true
		place, ok := places[name]
		if !ok {
			place = after.Len()
		}
		compare(name, before.Index(i), itemAt(after, place))
	}
	for i, name := range afterNames {
		if !kept[name] {
			compare(name, reflect.Value{}, after.Index(i))
		}
	}
	if found == len(*d) {
		*d = append(*d, difference{path: strings.TrimPrefix(path, ".") + ": order"})
	}
}

// condition compares two items if they are conditions. It includes their status and reason, which are machine-readable
// and can be logged.
func (d *differ) condition(path string, before, after reflect.Value) bool {
	was, wasOK := conditionFields(before)
	is, isOK := conditionFields(after)
	if !wasOK && before.IsValid() || !isOK && after.IsValid() {
		return false
	}
	var changes []string
	for _, name := range []string{"status", "reason"} {
		from, to := was[name], is[name]
		switch {
		case from == to:
		case !wasOK:
			changes = append(changes, name+" "+to)
		case !isOK:
			changes = append(changes, name+" "+from)
		default:
			changes = append(changes, name+" "+from+"→"+to)
		}
	}
	switch {
	case !wasOK:
		changes = append([]string{"added"}, changes...)
	case !isOK:
		changes = append([]string{"removed"}, changes...)
	default:
		changes = append(changes, otherFields(before, after, len(changes) > 0)...)
	}
	if len(changes) > 0 {
		*d = append(*d, difference{path: strings.TrimPrefix(path, ".") + ": " + strings.Join(changes, ", "), removed: !isOK})
	}
	return true
}

// otherFields returns the fields of a condition that differ, except status and reason. It returns lastTransitionTime
// and observedGeneration only if nothing else differs.
func otherFields(before, after reflect.Value, othersDiffer bool) (names []string) {
	var fields differ
	fields.values("", before, after)
	attendant := []string{}
	for _, field := range fields {
		switch field.path {
		case "status", "reason":
		case "lastTransitionTime", "observedGeneration":
			attendant = append(attendant, field.path)
		default:
			names = append(names, field.path)
		}
	}
	if othersDiffer || len(names) > 0 {
		return names
	}
	return attendant
}

// changedPaths returns the paths of the differences between two values, for logs.
func changedPaths(before, after any) []string {
	return paths(differences(before, after))
}

// maxLoggedPaths limits the length of a log line.
const maxLoggedPaths = 20

func paths(found []difference) []string {
	paths := make([]string, 0, min(len(found), maxLoggedPaths+1))
	for _, d := range found {
		if len(paths) == maxLoggedPaths {
			return append(paths, "…")
		}
		paths = append(paths, fmt.Sprint(d))
	}
	return paths
}

var jsonMarshaler = reflect.TypeFor[json.Marshaler]()

// isLeaf reports whether values of a type are compared as a whole: bytes, and times and quantities of apimachinery.
func isLeaf(t reflect.Type) bool {
	if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
		return true
	}
	return strings.HasPrefix(t.PkgPath(), "k8s.io/apimachinery/") && reflect.PointerTo(t).Implements(jsonMarshaler)
}
