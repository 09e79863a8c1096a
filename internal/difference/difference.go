// SPDX-License-Identifier: Apache-2.0

// Package difference describes how two values differ: as paths of JSON field names, without values that may be secret.
package difference

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
)

// Difference is one difference between two values.
type Difference struct {
	// Path consists of JSON field names. List items are identified by their name, conditions by their type, other items
	// by their index. For conditions it contains the status and the reason, but no other values.
	Path string
	// Removed reports whether only the first value is set.
	Removed bool
	// Before and After are the values, which may be secret. They are nil if they are missing, and for conditions.
	Before, After any

	conditions [2]Condition
}

// Condition is a condition of a status, without its times. It is zero for a condition that is missing.
type Condition struct{ Status, Reason, Message string }

// Field returns the path without the description of the difference that the paths of conditions have.
func (d Difference) Field() string {
	if d.conditions == [2]Condition{} {
		return d.Path // the key of a map may have a colon
	}
	field, _, _ := strings.Cut(d.Path, ": ")
	return field
}

// Values returns the values to compare with other differences of the same field: Before and After, or each a
// [Condition]. They are nil if they are missing, zero or empty.
func (d Difference) Values() (before, after any) {
	before, after = d.Before, d.After
	if d.conditions != [2]Condition{} {
		before, after = d.conditions[0], d.conditions[1]
	}
	if isUnset(reflect.ValueOf(before)) {
		before = nil
	}
	if isUnset(reflect.ValueOf(after)) {
		after = nil
	}
	return before, after
}

// Equal compares values semantically: quantities by amount, times by instant, and nil like empty. DeepEqual is faster
// and usually sufficient.
func Equal(a, b any) bool {
	return reflect.DeepEqual(a, b) || equality.Semantic.DeepEqual(a, b)
}

// Between returns the differences between two values of the same Go type.
func Between(before, after any) []Difference {
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

type differ []Difference

func (d *differ) add(path string, before, after reflect.Value) {
	removed := !after.IsValid() || isUnset(after) && !isUnset(before)
	*d = append(*d, Difference{
		Path: strings.TrimPrefix(path, "."), Removed: removed, Before: valueOf(before), After: valueOf(after),
	})
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
	if before.CanInterface() && Equal(before.Interface(), after.Interface()) {
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
		*d = append(*d, Difference{Path: strings.TrimPrefix(path, ".") + ": order"})
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
		*d = append(*d, Difference{
			Path: strings.TrimPrefix(path, ".") + ": " + strings.Join(changes, ", "), Removed: !isOK,
			conditions: [2]Condition{conditionOf(was, before), conditionOf(is, after)},
		})
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
		switch field.Path {
		case "status", "reason":
		case "lastTransitionTime", "observedGeneration":
			attendant = append(attendant, field.Path)
		default:
			names = append(names, field.Path)
		}
	}
	if othersDiffer || len(names) > 0 {
		return names
	}
	return attendant
}

// MaxPaths limits the number of paths in a log line.
const MaxPaths = 20

// Paths returns the first 20 paths, for logs. If there are more, the last item is "…".
func Paths(found []Difference) []string {
	paths := make([]string, 0, min(len(found), MaxPaths+1))
	for _, d := range found {
		if len(paths) == MaxPaths {
			return append(paths, "…")
		}
		paths = append(paths, d.Path)
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
