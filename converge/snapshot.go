// SPDX-License-Identifier: Apache-2.0

package converge

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

// snapshot is the state at a Settle.
type snapshot struct {
	kinds   []schema.GroupVersionKind
	objects [][]client.Object
	cloud   map[string]string
	outside outsideState
	// generated are the names that were generated until then.
	generated generatedNames
	// primaries are the UIDs of primary objects until then.
	primaries generatedNames
	// foreign are the objects that disturbances of users have created.
	foreign map[types.UID]bool
	// flat is the state as a list of fields, once it was needed.
	flat map[string]*flatObject
	// byUID identifies objects, once that was needed.
	byUID map[types.UID]string
}

// flatObject is an object as a list of fields.
type flatObject struct {
	// object is nil for a value of the external system.
	object client.Object
	// read lists the fields. Most objects are equal to others, so that their fields are not needed.
	read func() fields
	// extra is set for all but the first of several objects whose names differ only in generated parts.
	extra bool
}

// fields are the fields of an object by path.
type fields map[string]field

// field is a field of an object.
type field struct {
	value string
	// mask is the path for masks: all items of a list have the same one.
	mask string
}

// names are the generated names, which include UIDs of primary objects: controllers name what they create outside of
// the cluster after these.
func (s *snapshot) names() generatedNames { return slices.Concat(s.generated, s.primaries) }

// literal returns the state with the UIDs of primary objects.
func (s *snapshot) literal() *snapshot {
	return &snapshot{kinds: s.kinds, objects: s.objects, cloud: s.cloud, generated: s.generated}
}

// count returns the number of objects of a kind.
func (s *snapshot) count(kind schema.GroupVersionKind) int {
	if i := slices.Index(s.kinds, kind); i >= 0 {
		return len(s.objects[i])
	}
	return 0
}

// reader lists the fields of objects, and compares states field by field.
type reader struct {
	registry *kinds.Registry
	applier  *apply.Applier
	masks    []mask
}

// mask is a field that is not compared: that of a kind or, if the kind is empty, of all kinds and external systems.
type mask struct {
	kind  schema.GroupVersionKind
	field string
}

// difference describes an object that differs between two states.
type difference struct {
	// name is that of the object.
	name string
	// extra is set if it is one object too many of several with generated names.
	extra bool
	cause finding.Cause
	lines []string
	// uid is that of an object that should not exist.
	uid types.UID
}

// rank is lower for more important differences: duplicates, then objects that are missing or should not exist.
func (d difference) rank() int {
	switch {
	case d.extra:
		return 0
	case d.cause == finding.CauseMissing || d.cause == finding.CauseUnexpected:
		return 1
	default:
		return 2
	}
}

// differences compares a state to the expected one.
func (r reader) differences(want, got *snapshot, masked map[string]bool) []difference {
	if alike(want, got) {
		return nil
	}
	wanted, there := r.flatten(want), r.flatten(got)
	same := comparison{want, got}.sameFlat
	names := maps.Clone(wanted)
	maps.Copy(names, there)
	var found []difference
	for _, name := range phrase.SortedKeys(names) {
		d := difference{name: name, extra: names[name].extra}
		switch {
		case there[name] == nil:
			d.cause, d.lines = finding.CauseMissing, []string{name + " is missing"}
		case wanted[name] == nil:
			d.cause, d.lines = finding.CauseUnexpected, []string{name + " should not exist"}
			if obj := there[name].object; obj != nil {
				d.uid = obj.GetUID()
			}
			if got.foreign[d.uid] {
				continue
			}
		case !same(wanted[name], there[name]):
			d.cause, d.lines = finding.CauseDifferent, differentFields(name, wanted[name].read(), there[name].read(), masked)
		}
		if len(d.lines) > 0 {
			found = append(found, d)
		}
	}
	return found
}

// sameFlat reports whether two objects are equal. It may return false for equal ones.
func (c comparison) sameFlat(a, b *flatObject) bool {
	return a.object != nil && b.object != nil && c.sameObject(a.object, b.object)
}

func differentFields(name string, want, got fields, masked map[string]bool) []string {
	var lines []string
	for _, path := range different(want, got) {
		w, wanted := want[path]
		g, there := got[path]
		switch {
		case masked[maskKey(name, w, g)]:
		case !there:
			lines = append(lines, fmt.Sprintf("%s: %s is missing, want %s", name, path, w.value))
		case !wanted:
			lines = append(lines, fmt.Sprintf("%s: %s should not be set, got %s", name, path, g.value))
		default:
			lines = append(lines, fmt.Sprintf("%s: %s is %s, want %s", name, path, g.value, w.value))
		}
	}
	return lines
}

// flagValue is the value of a field that has none.
const flagValue = "is set"

// different returns the paths of the fields that differ, sorted.
func different(a, b fields) []string {
	var paths []string
	for path, f := range a {
		if g, ok := b[path]; !ok || f.value != g.value {
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

// maskKey returns the key for masks of a field of which one state may lack.
func maskKey(name string, f, g field) string { return name + ":" + cmp.Or(f.mask, g.mask) }

// flatten lists the fields of a state by object, without what differs in each run: versions, UIDs, times, and names
// that the API server has generated.
func (r reader) flatten(s *snapshot) map[string]*flatObject {
	if s.flat != nil {
		return s.flat
	}
	replace, names := sync.OnceValue(s.replacer), s.names()
	groups := map[string][]*flatObject{}
	kinds := map[string]schema.GroupVersionKind{}
	for i, kind := range s.kinds {
		for _, obj := range s.objects[i] {
			name := names.thing(kind, obj).String()
			if other, ok := kinds[name]; ok && other != kind {
				name += " of " + kind.Group
			}
			kinds[name] = kind
			groups[name] = append(groups[name], &flatObject{object: obj, read: sync.OnceValue(func() fields {
				return r.fieldsOf(kind, obj, replace())
			})})
		}
	}
	for _, key := range phrase.SortedKeys(s.cloud) {
		name := "cloud " + names.replace(key)
		groups[name] = append(groups[name], &flatObject{read: sync.OnceValue(func() fields {
			return fields{"value": {replace().Replace(s.cloud[key]), "value"}}
		})})
	}
	r.flattenOutside(s, replace, func(name string, f *flatObject) { groups[name] = append(groups[name], f) })
	s.flat = map[string]*flatObject{}
	for name, group := range groups {
		slices.SortFunc(group, func(a, b *flatObject) int { return strings.Compare(a.read().String(), b.read().String()) })
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

func (f fields) String() string {
	var b strings.Builder
	for _, path := range phrase.SortedKeys(f) {
		b.WriteString(path + ": " + f[path].value + "\n")
	}
	return b.String()
}

// fieldsOf lists the fields of an object.
func (r reader) fieldsOf(kind schema.GroupVersionKind, obj client.Object, replace *replacer) fields {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return fields{"": {value: err.Error()}}
	}
	f := flattener{fields{}, replace, r.conditionsAreMap(kind)}
	f.addMetadata(obj)
	root := r.applier.TypeOf(kind)
	for key, value := range content {
		if key != "apiVersion" && key != "kind" && key != "metadata" {
			f.add(fieldPath{}.field(key), value, root.Field(key))
		}
	}
	for _, mask := range r.masks {
		if mask.kind.Empty() || mask.kind == kind {
			f.remove(mask.field)
		}
	}
	return f.fields
}

// remove removes a field and its parts.
func (f flattener) remove(masked string) {
	for path, field := range f.fields {
		if within(path, masked) || within(field.mask, masked) {
			delete(f.fields, path)
		}
	}
}

// within reports whether a field is another one or a part of it.
func within(path, outer string) bool {
	rest, ok := strings.CutPrefix(path, outer)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// addMetadata adds the metadata that users and controllers set.
func (f flattener) addMetadata(obj client.Object) {
	addMap(f, fieldPath{"metadata.labels", "metadata.labels"}.bracketed, obj.GetLabels(), apply.Type{})
	addMap(f, fieldPath{"metadata.annotations", "metadata.annotations"}.bracketed, obj.GetAnnotations(), apply.Type{})
	for _, finalizer := range obj.GetFinalizers() {
		f.set("metadata.finalizers["+finalizer+"]", flagValue)
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
		f.set("metadata.deletionTimestamp", flagValue)
	}
}

// mask adds the fields that differ between two runs without faults to a set: they are different in each run.
func (r reader) mask(masked map[string]bool, a, b []*snapshot) {
	for i := range min(len(a), len(b)) {
		if alike(a[i], b[i]) {
			continue
		}
		one, other := r.flatten(a[i]), r.flatten(b[i])
		same := comparison{a[i], b[i]}.sameFlat
		for name, f := range one {
			g := other[name]
			if g == nil {
				continue
			}
			if same(f, g) {
				continue
			}
			for _, path := range different(f.read(), g.read()) {
				masked[maskKey(name, f.read()[path], g.read()[path])] = true
			}
		}
	}
}
