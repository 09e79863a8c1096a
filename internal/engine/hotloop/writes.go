// SPDX-License-Identifier: Apache-2.0

package hotloop

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/difference"
	"trueup.dev/internal/engine/guard"
)

// ObjectWrite is the change of one object by a request: from the object before its first write to the object after its
// last write.
type ObjectWrite struct {
	guard.Change
	// before and after are the metadata of the object before the first and after the last write. They are copies,
	// because values are compared without them.
	before, after writtenMeta
	fields        []writtenField
}

type writtenMeta struct {
	version  string
	managers []metav1.ManagedFieldsEntry
}

func metaOf(obj client.Object) writtenMeta {
	return writtenMeta{version: obj.GetResourceVersion(), managers: obj.GetManagedFields()}
}

// writtenField is a field that the request has changed or has tried to change. Its values are those before the write,
// stored, and sent if the server stored another value. A missing value is nil.
type writtenField struct {
	path             string
	before, is, sent any
	refused          bool
}

// ObjectWrites merges the changes of each object. It leaves out objects whose last write was not inspected or not
// stored: deletions and dry runs.
func ObjectWrites(journal *guard.Journal) (writes []ObjectWrite) {
	changes := journal.Changes()
	if len(changes) == 0 {
		return nil
	}
	stored := map[guard.Object]guard.State{}
	for object, state := range journal.Written {
		stored[object] = state
	}
	places := map[guard.Object]int{}
	for _, change := range changes {
		if change.Before == nil || change.After == nil || change.Verb == "deletes" {
			continue
		}
		place, ok := places[change.Object]
		if !ok {
			place = len(writes)
			places[change.Object] = place
			writes = append(writes, ObjectWrite{Change: change, before: metaOf(change.Before)})
		}
		w := &writes[place]
		w.after = metaOf(change.After)
		w.fields = append(w.fields, refusedFields(change)...)
		change.Before = w.Before
		w.Change = change
	}
	kept := writes[:0]
	for _, w := range writes {
		if state, ok := stored[w.Object]; ok && state.Version == w.after.version {
			w.fields = append(w.fields, w.changedFields()...)
			kept = append(kept, w)
		}
	}
	return kept
}

// refusedFields returns the fields for which the server stored another value than the request sent. A field that the
// request did not set can have a default.
func refusedFields(change guard.Change) (fields []writtenField) {
	type result struct{ sent, stored any }
	refused := map[string]result{}
	for _, d := range difference.Between(comparable(change.Requested), comparable(change.After)) {
		path := d.Field()
		sent, stored := d.Values()
		if changesField(change.Subresource, path) && sent != nil && HashValue(sent) != HashValue(stored) {
			refused[path] = result{sent, stored}
		}
	}
	if len(refused) == 0 {
		return nil
	}
	for _, d := range difference.Between(comparable(change.Before), comparable(change.Requested)) {
		path := d.Field()
		before, sent := d.Values()
		if r, ok := refused[path]; ok && HashValue(before) != HashValue(sent) {
			fields = append(fields, writtenField{path: path, before: before, sent: r.sent, is: r.stored, refused: true})
		}
	}
	return fields
}

// changesField reports whether a write changes a field. A write to a subresource changes nothing else, and another
// write usually does not change the status.
func changesField(subresource, path string) bool {
	top := path
	if end := strings.IndexAny(path, ".["); end >= 0 {
		top = path[:end]
	}
	if subresource == "" {
		return top != "status" && path != "metadata.creationTimestamp" && path != "metadata.uid"
	}
	return top == subresource
}

func (w ObjectWrite) changedFields() (fields []writtenField) {
	refused := map[string]bool{}
	for _, f := range w.fields {
		refused[f.path] = true
	}
	for _, d := range difference.Between(comparable(w.Before), comparable(w.After)) {
		path := d.Field()
		if before, after := d.Values(); !refused[path] && HashValue(before) != HashValue(after) {
			fields = append(fields, writtenField{path: path, before: before, is: after})
		}
	}
	return fields
}

// Hashed returns the write with hashes of its values.
func (w ObjectWrite) Hashed() Write {
	hashed := Write{Object: w.Object, Before: w.before.version, After: w.after.version}
	for _, f := range w.fields {
		hashed.Fields = append(hashed.Fields, Field{
			Path: f.path, Before: HashValue(f.before), After: HashValue(f.is), Refused: f.refused, Requested: HashValue(f.sent),
		})
	}
	return hashed
}

// HashValue returns a hash of a value. It is 0 if the value is missing.
func HashValue(value any) uint64 {
	if value == nil {
		return 0
	}
	data, err := json.Marshal(value)
	if err != nil {
		data = fmt.Append(nil, value)
	}
	return Hash(data)
}

// Field returns the path of the field of a conflict.
func (w *ObjectWrite) Field(c Conflict) string { return w.fields[c.Field].path }

// Describe describes a conflict with its writers, and with masked values.
func (w *ObjectWrite) Describe(c Conflict) string {
	field, secret, step := w.fields[c.Field], w.Kind.Kind == "Secret", ""
	if w.Step != "" {
		step = " in step " + w.Step
	}
	within := c.Within.Round(time.Second).String()
	object := fmt.Sprintf("%s %s", w.Kind.Kind, w.Key)
	ours, other := writers(w.before.managers, w.after.managers, field.path)
	if c.Refused {
		return fmt.Sprintf("%s of %s is not stored as sent, %d times in %s: %s sends %s%s, "+
			"the API server stores %s, probably because of a mutating webhook",
			field.path, object, c.Times, within, ours, masked(field.sent, secret), step, masked(field.is, secret))
	}
	return fmt.Sprintf("%s of %s changed back and forth %d times in %s: %s writes %s%s, %s writes %s",
		field.path, object, c.Times, within, ours, masked(field.is, secret), step,
		other, masked(field.before, secret))
}

// comparable clears the fields that every write changes.
func comparable(obj client.Object) client.Object {
	obj.SetResourceVersion("")
	obj.SetGeneration(0)
	obj.SetManagedFields(nil)
	obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return obj
}

// masked describes a value without its content. The number identifies the value in this process. The status and reason
// of a condition are not masked.
func masked(value any, secret bool) string {
	if value == nil {
		return "no value"
	}
	number := HashValue(value) & 0xffff
	if secret {
		return fmt.Sprintf("a value #%04x", number)
	}
	if condition, ok := value.(difference.Condition); ok {
		return fmt.Sprintf("status %s, reason %s", condition.Status, condition.Reason)
	}
	what := "a value"
	switch v := reflect.ValueOf(value); v.Kind() {
	case reflect.String:
		what = fmt.Sprintf("a string of %d bytes", v.Len())
	case reflect.Bool:
		what = "a boolean"
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Float64:
		what = "a number"
	case reflect.Slice:
		what = fmt.Sprintf("a list of %d items", v.Len())
	case reflect.Map:
		what = fmt.Sprintf("a map of %d entries", v.Len())
	}
	return fmt.Sprintf("%s #%04x", what, number)
}
