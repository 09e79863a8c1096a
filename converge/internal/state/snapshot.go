// SPDX-License-Identifier: Apache-2.0

// Package state compares the states of two runs: all objects, and what is outside of the cluster. What differs in each
// run does not count: versions, UIDs, times, and names that the API server or the reconciler has generated.
package state

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/finding"
	"trueup.dev/converge/internal/phrase"
	"trueup.dev/internal/memapi/apply"
	"trueup.dev/internal/memapi/kinds"
)

// Snapshot is the state at a Settle.
type Snapshot struct {
	Kinds   []schema.GroupVersionKind
	Objects [][]client.Object
	Cloud   map[string]string
	Outside Outside
	// Generated are the names that were generated until then.
	Generated GeneratedNames
	// Primaries are the UIDs of primary objects until then.
	Primaries GeneratedNames
	// Foreign are the objects that disturbances of users have created.
	Foreign map[types.UID]bool
	// flat is the state as a list of fields, once it was needed.
	flat map[string]*FlatObject
	// byUID identifies objects, once that was needed.
	byUID map[types.UID]string
}

// FlatObject is an object as a list of fields.
type FlatObject struct {
	// object is nil for a value of the external system.
	object client.Object
	// Read lists the fields. Most objects are equal to others, and their fields are not needed.
	Read func() Fields
	// extra is set for all but the first of several objects whose names differ only in generated parts.
	extra bool
}

// Fields are the fields of an object by path.
type Fields map[string]Field

// Field is a field of an object.
type Field struct {
	Value string
	// Mask is the path for masks: all items of a list have the same one.
	Mask string
}

// Names are the generated names, which include UIDs of primary objects: controllers name what they create outside of
// the cluster after these.
func (s *Snapshot) Names() GeneratedNames { return slices.Concat(s.Generated, s.Primaries) }

// Literal returns the state with the UIDs of primary objects.
func (s *Snapshot) Literal() *Snapshot {
	return &Snapshot{Kinds: s.Kinds, Objects: s.Objects, Cloud: s.Cloud, Generated: s.Generated}
}

// Count returns the number of objects of a kind.
func (s *Snapshot) Count(kind schema.GroupVersionKind) int {
	if i := slices.Index(s.Kinds, kind); i >= 0 {
		return len(s.Objects[i])
	}
	return 0
}

// Reader lists the fields of objects, and compares states field by field.
type Reader struct {
	Registry *kinds.Registry
	Applier  *apply.Applier
	Masks    []Mask
}

// Mask is a field that is not compared: the state of a kind or, if the kind is empty, of all kinds and external
// systems.
type Mask struct {
	Kind  schema.GroupVersionKind
	Field string
}

// Difference describes an object that differs between two states.
type Difference struct {
	// Name is the name of the object.
	Name string
	// Extra is set if it is one object too many of several with generated names.
	Extra bool
	Cause finding.Cause
	Lines []string
	// Uid is the UID of an object that should not exist.
	Uid types.UID
}

// Rank is lower for more important differences: duplicates, then objects that are missing or should not exist.
func (d Difference) Rank() int {
	switch {
	case d.Extra:
		return 0
	case d.Cause == finding.CauseMissing || d.Cause == finding.CauseUnexpected:
		return 1
	default:
		return 2
	}
}

// Differences compares a state to the expected one.
func (r Reader) Differences(want, got *Snapshot, masked map[string]bool) []Difference {
	if Alike(want, got) {
		return nil
	}
	wanted, there := r.Flatten(want), r.Flatten(got)
	same := Comparison{want, got}.SameFlat
	names := maps.Clone(wanted)
	maps.Copy(names, there)
	var found []Difference
	for _, name := range phrase.SortedKeys(names) {
		d := Difference{Name: name, Extra: names[name].extra}
		switch {
		case there[name] == nil:
			d.Cause, d.Lines = finding.CauseMissing, []string{name + " is missing"}
		case wanted[name] == nil:
			d.Cause, d.Lines = finding.CauseUnexpected, []string{name + " should not exist"}
			if obj := there[name].object; obj != nil {
				d.Uid = obj.GetUID()
			}
			if got.Foreign[d.Uid] {
				continue
			}
		case !same(wanted[name], there[name]):
			d.Cause, d.Lines = finding.CauseDifferent, DifferentFields(name, wanted[name].Read(), there[name].Read(), masked)
		}
		if len(d.Lines) > 0 {
			found = append(found, d)
		}
	}
	return found
}

// SameFlat reports whether two objects are equal. It may return false for equal ones.
func (c Comparison) SameFlat(a, b *FlatObject) bool {
	return a.object != nil && b.object != nil && c.sameObject(a.object, b.object)
}

// DifferentFields describes the fields of an object that differ, except for masked ones.
func DifferentFields(name string, want, got Fields, masked map[string]bool) []string {
	var lines []string
	for _, path := range Different(want, got) {
		w, wanted := want[path]
		g, there := got[path]
		switch {
		case masked[MaskKey(name, w, g)]:
		case !there:
			lines = append(lines, fmt.Sprintf("%s: %s is missing, want %s", name, path, w.Value))
		case !wanted:
			lines = append(lines, fmt.Sprintf("%s: %s should not be set, got %s", name, path, g.Value))
		default:
			lines = append(lines, fmt.Sprintf("%s: %s is %s, want %s", name, path, g.Value, w.Value))
		}
	}
	return lines
}

// FlagValue is the value of a field that has none.
const FlagValue = "is set"

// Different returns the paths of the fields that differ, sorted.
func Different(a, b Fields) []string {
	var paths []string
	for path, f := range a {
		if g, ok := b[path]; !ok || f.Value != g.Value {
			paths = append(paths, path)
		}
	}
	for path := range b {
		if _, ok := a[path]; !ok {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// MaskKey returns the key for masks of a field that may be missing in one state.
func MaskKey(name string, f, g Field) string { return name + ":" + cmp.Or(f.Mask, g.Mask) }

// Flatten lists the fields of a state by object, without what differs in each run: versions, UIDs, times, and names
// that the API server has generated.
func (r Reader) Flatten(s *Snapshot) map[string]*FlatObject {
	if s.flat != nil {
		return s.flat
	}
	replace, names := sync.OnceValue(s.replacer), s.Names()
	groups := map[string][]*FlatObject{}
	kinds := map[string]schema.GroupVersionKind{}
	for i, kind := range s.Kinds {
		for _, obj := range s.Objects[i] {
			name := names.Thing(kind, obj).String()
			if other, ok := kinds[name]; ok && other != kind {
				name += " of " + kind.Group
			}
			kinds[name] = kind
			groups[name] = append(groups[name], &FlatObject{object: obj, Read: sync.OnceValue(func() Fields {
				return r.FieldsOf(kind, obj, replace())
			})})
		}
	}
	for _, key := range phrase.SortedKeys(s.Cloud) {
		name := "cloud " + names.Replace(key)
		groups[name] = append(groups[name], &FlatObject{Read: sync.OnceValue(func() Fields {
			return Fields{"value": {replace().Replace(s.Cloud[key]), "value"}}
		})})
	}
	r.flattenOutside(s, replace, func(name string, f *FlatObject) { groups[name] = append(groups[name], f) })
	s.flat = map[string]*FlatObject{}
	for name, group := range groups {
		slices.SortFunc(group, func(a, b *FlatObject) int { return strings.Compare(a.Read().String(), b.Read().String()) })
		for i, f := range group {
			f.extra = i > 0
			s.flat[numbered(name, i)] = f
		}
	}
	return s.flat
}

// numbered returns the name of one of several objects, or fields, that have the same name.
func numbered(name string, i int) string {
	if i == 0 {
		return name
	}
	return fmt.Sprintf("%s (%d)", name, i+1)
}

func (f Fields) String() string {
	var b strings.Builder
	for _, path := range phrase.SortedKeys(f) {
		b.WriteString(path + ": " + f[path].Value + "\n")
	}
	return b.String()
}

// FieldsOf lists the fields of an object.
func (r Reader) FieldsOf(kind schema.GroupVersionKind, obj client.Object, replace *Replacer) Fields {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return Fields{"": {Value: err.Error()}}
	}
	f := flattener{Fields{}, replace, r.conditionsAreMap(kind)}
	f.addMetadata(obj)
	root := r.Applier.TypeOf(kind)
	for key, value := range content {
		if key != "apiVersion" && key != "kind" && key != "metadata" {
			f.add(fieldPath{}.field(key), value, root.Field(key))
		}
	}
	for _, mask := range r.Masks {
		if mask.Kind.Empty() || mask.Kind == kind {
			f.remove(mask.Field)
		}
	}
	return f.fields
}

// remove removes a field and its parts.
func (f flattener) remove(masked string) {
	for path, field := range f.fields {
		if Within(path, masked) || Within(field.Mask, masked) {
			delete(f.fields, path)
		}
	}
}

// Within reports whether a field is another one or a part of it.
func Within(path, outer string) bool {
	rest, ok := strings.CutPrefix(path, outer)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// addMetadata adds the metadata that users and controllers set.
func (f flattener) addMetadata(obj client.Object) {
	addMap(f, fieldPath{"metadata.labels", "metadata.labels"}.bracketed, obj.GetLabels(), apply.Type{})
	addMap(f, fieldPath{"metadata.annotations", "metadata.annotations"}.bracketed, obj.GetAnnotations(), apply.Type{})
	for _, finalizer := range obj.GetFinalizers() {
		f.set("metadata.finalizers["+finalizer+"]", FlagValue)
	}
	for _, owner := range obj.GetOwnerReferences() {
		kind := "an owner"
		if owner.Controller != nil && *owner.Controller {
			kind = "the controller"
		}
		// The UID of an owner that no longer exists has no name.
		f.set("metadata.ownerReferences["+owner.Kind+" "+f.replace.Replace(owner.Name)+"]", kind+", "+f.replace.Replace(
			string(owner.UID),
		))
	}
	if !obj.GetDeletionTimestamp().IsZero() {
		f.set("metadata.deletionTimestamp", FlagValue)
	}
}

// AddDiffering adds the fields that differ between two runs without faults to a set: they are different in each run.
func (r Reader) AddDiffering(masked map[string]bool, a, b []*Snapshot) {
	for i := range min(len(a), len(b)) {
		if Alike(a[i], b[i]) {
			continue
		}
		one, other := r.Flatten(a[i]), r.Flatten(b[i])
		same := Comparison{a[i], b[i]}.SameFlat
		for name, f := range one {
			g := other[name]
			if g == nil {
				continue
			}
			if same(f, g) {
				continue
			}
			for _, path := range Different(f.Read(), g.Read()) {
				masked[MaskKey(name, f.Read()[path], g.Read()[path])] = true
			}
		}
	}
}
