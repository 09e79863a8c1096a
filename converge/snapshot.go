// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// snapshot is the state at a Settle.
type snapshot struct {
	kinds   []schema.GroupVersionKind
	objects [][]client.Object
	cloud   map[string]string
	// flat is the state as a list of fields, once it was needed.
	flat map[string]*flatObject
}

// flatObject is an object as a list of fields.
type flatObject struct {
	fields fields
	// extra is set for all but the first of several objects whose names the API server has generated from one prefix.
	extra bool
}

// fields are the values of an object by path.
type fields map[string]string

func (w *world) snapshot() *snapshot {
	s := &snapshot{cloud: maps.Clone(w.cloud.values)}
	for _, kind := range w.server.Kinds() {
		if kind.Group == "" && kind.Kind == "Namespace" {
			continue
		}
		s.kinds = append(s.kinds, kind)
		s.objects = append(s.objects, w.server.List(kind))
	}
	return s
}

// count returns the number of objects of a kind.
func (s *snapshot) count(kind schema.GroupVersionKind) int {
	if i := slices.Index(s.kinds, kind); i >= 0 {
		return len(s.objects[i])
	}
	return 0
}

// difference describes an object that differs between two states.
type difference struct {
	// name is that of the object.
	name string
	// extra is set if it is one object too many of several with generated names.
	extra bool
	cause Cause
	lines []string
}

// rank is lower for more important differences: duplicates, then objects that are missing or should not exist.
func (d difference) rank() int {
	switch {
	case d.extra:
		return 0
	case d.cause == CauseMissing || d.cause == CauseUnexpected:
		return 1
	default:
		return 2
	}
}

// differences compares a state to the expected one.
func (p *plan) differences(want, got *snapshot, masked map[string]bool) []difference {
	if alike(want, got) {
		return nil
	}
	wanted, there := p.flatten(want), p.flatten(got)
	names := maps.Clone(wanted)
	maps.Copy(names, there)
	var found []difference
	for _, name := range sortedKeys(names) {
		d := difference{name: name, extra: names[name].extra}
		switch {
		case there[name] == nil:
			d.cause, d.lines = CauseMissing, []string{name + " is missing"}
		case wanted[name] == nil:
			d.cause, d.lines = CauseUnexpected, []string{name + " should not exist"}
		default:
			d.cause, d.lines = CauseDifferent, differentFields(name, wanted[name].fields, there[name].fields, masked)
		}
		if len(d.lines) > 0 {
			found = append(found, d)
		}
	}
	return found
}

func differentFields(name string, want, got fields, masked map[string]bool) []string {
	var lines []string
	paths := map[string]bool{}
	for path := range want {
		paths[path] = true
	}
	for path := range got {
		paths[path] = true
	}
	for _, path := range sortedKeys(paths) {
		w, wanted := want[path]
		g, there := got[path]
		if w == g && wanted == there || masked[maskKey(name, path)] {
			continue
		}
		switch {
		case !there:
			lines = append(lines, fmt.Sprintf("%s: %s is missing, want %s", name, path, w))
		case !wanted:
			lines = append(lines, fmt.Sprintf("%s: %s should not be set, got %s", name, path, g))
		default:
			lines = append(lines, fmt.Sprintf("%s: %s is %s, want %s", name, path, g, w))
		}
	}
	return lines
}

// maskKey returns the key of a field for masks. All items of a list have the same key.
func maskKey(name, path string) string {
	var b strings.Builder
	for rest := path; ; {
		before, after, ok := strings.Cut(rest, "[#")
		b.WriteString(before)
		if !ok {
			break
		}
		_, rest, _ = strings.Cut(after, "]")
	}
	return name + ":" + b.String()
}

// flatten lists the fields of a state by object, without what differs in each run: versions, UIDs, times, and names
// that the API server has generated.
func (p *plan) flatten(s *snapshot) map[string]*flatObject {
	if s.flat != nil {
		return s.flat
	}
	n := &namer{}
	for i, kind := range s.kinds {
		for _, obj := range s.objects[i] {
			n.learn(kind, obj)
		}
	}
	replace := n.replacer()
	groups := map[string][]fields{}
	kinds := map[string]schema.GroupVersionKind{}
	for i, kind := range s.kinds {
		for _, obj := range s.objects[i] {
			name := thingOf(kind, obj).String()
			if other, ok := kinds[name]; ok && other != kind {
				name += " of " + kind.Group
			}
			kinds[name] = kind
			groups[name] = append(groups[name], p.fieldsOf(kind, obj, replace))
		}
	}
	s.flat = map[string]*flatObject{}
	for name, group := range groups {
		slices.SortFunc(group, func(a, b fields) int { return strings.Compare(a.String(), b.String()) })
		for i, f := range group {
			unique := name
			if i > 0 {
				unique = fmt.Sprintf("%s (%d)", name, i+1)
			}
			s.flat[unique] = &flatObject{f, i > 0}
		}
	}
	for _, key := range sortedKeys(s.cloud) {
		s.flat["cloud "+key] = &flatObject{fields: fields{"value": replace.Replace(s.cloud[key])}}
	}
	return s.flat
}

func (f fields) String() string {
	encoded, err := json.Marshal(f) // sorts
	if err != nil {
		return err.Error()
	}
	return string(encoded)
}

// namer replaces what has another name in each run.
type namer struct{ pairs []string }

func (n *namer) learn(kind schema.GroupVersionKind, obj client.Object) {
	t := thingOf(kind, obj)
	n.pairs = append(n.pairs, string(obj.GetUID()), "uid("+t.String()+")")
	if t.generated {
		n.pairs = append(n.pairs, obj.GetName(), t.name+"*")
	}
}

func (n *namer) replacer() *strings.Replacer { return strings.NewReplacer(n.pairs...) }

// fieldsOf lists the fields of an object.
func (p *plan) fieldsOf(kind schema.GroupVersionKind, obj client.Object, replace *strings.Replacer) fields {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return fields{"": err.Error()}
	}
	f := fields{}
	for field, value := range content {
		switch field {
		case "apiVersion", "kind":
		case "metadata":
			f.addMetadata(obj, replace)
		default:
			f.add(field, value, replace)
		}
	}
	for _, mask := range p.Masks {
		if mask.Object != nil {
			if gvk, err := apiutil.GVKForObject(mask.Object, p.Scheme); err != nil || gvk != kind {
				continue
			}
		}
		for path := range f {
			if _, plain, _ := strings.Cut(maskKey("", path), ":"); plain == mask.Field ||
				strings.HasPrefix(plain, mask.Field+".") || strings.HasPrefix(plain, mask.Field+"[") {
				delete(f, path)
			}
		}
	}
	return f
}

// addMetadata adds the metadata that users and controllers set.
func (f fields) addMetadata(obj client.Object, replace *strings.Replacer) {
	for key, value := range obj.GetLabels() {
		f["metadata.labels["+key+"]"] = strconv.Quote(replace.Replace(value))
	}
	for key, value := range obj.GetAnnotations() {
		if key != touched {
			f["metadata.annotations["+key+"]"] = scalar(value, replace)
		}
	}
	for _, finalizer := range obj.GetFinalizers() {
		f["metadata.finalizers["+finalizer+"]"] = "is set"
	}
	for _, owner := range obj.GetOwnerReferences() {
		kind := "an owner"
		if owner.Controller != nil && *owner.Controller {
			kind = "the controller"
		}
		// The UID of an owner that no longer exists has no name.
		f["metadata.ownerReferences["+owner.Kind+" "+replace.Replace(owner.Name)+"]"] = kind + ", " + replace.Replace(
			string(owner.UID),
		)
	}
	if !obj.GetDeletionTimestamp().IsZero() {
		f["metadata.deletionTimestamp"] = "is set"
	}
}

func (f fields) add(path string, value any, replace *strings.Replacer) {
	switch value := value.(type) {
	case map[string]any:
		for key, item := range value {
			if key == "observedGeneration" {
				continue // further writes change generations
			}
			if plainKey(key) {
				f.add(path+"."+key, item, replace)
			} else {
				f.add(path+"["+key+"]", item, replace)
			}
		}
	case []any:
		for i, item := range value {
			f.add(path+"[#"+strconv.Itoa(i)+"]", item, replace)
		}
	case nil:
	default:
		f[path] = scalar(value, replace)
	}
}

func plainKey(key string) bool { return !strings.ContainsAny(key, ".[]/ ") }

func scalar(value any, replace *strings.Replacer) string {
	s, ok := value.(string)
	if !ok {
		return fmt.Sprint(value)
	}
	if isTime(s) {
		return "a time"
	}
	return strconv.Quote(replace.Replace(s))
}

func isTime(s string) bool {
	if len(s) < len("2000-01-01T00:00:00Z") || s[4] != '-' || s[10] != 'T' {
		return false
	}
	_, err := time.Parse(time.RFC3339Nano, s)
	return err == nil
}

// masks returns the fields that differ between two runs without faults: they are generated in each run.
func (p *plan) masks(a, b []*snapshot) map[string]bool {
	masked := map[string]bool{}
	for i := range min(len(a), len(b)) {
		one, other := p.flatten(a[i]), p.flatten(b[i])
		for name, f := range one {
			g := other[name]
			if g == nil {
				continue
			}
			for path, value := range f.fields {
				if g.fields[path] != value {
					masked[maskKey(name, path)] = true
				}
			}
			for path := range g.fields {
				if _, ok := f.fields[path]; !ok {
					masked[maskKey(name, path)] = true
				}
			}
		}
	}
	return masked
}
