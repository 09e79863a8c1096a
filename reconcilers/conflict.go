// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/difference"
	"trueup.dev/internal/guard"
	"trueup.dev/internal/hotloop"
	"trueup.dev/observe"
)

// objectWrite is the change of one object by a request: from the object before its first write to the object after its
// last write.
type objectWrite struct {
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

// compareWrites detects fields that this controller and another writer change back and forth, and reports them.
func (r *request) compareWrites(ctx context.Context, root root) {
	changes := r.journal.Changes()
	this := r.reconciled(root, Result{})
	var writes []objectWrite
	if len(changes) > 0 {
		writes = r.objectWrites(changes)
		for _, w := range writes {
			this.Changes = append(this.Changes, w.hashed())
		}
	}
	for _, conflict := range r.requests.loops.Compare(r.scope.request, this) {
		w := writes[conflict.Write]
		r.reportConflict(ctx, root, conflict, w, w.fields[conflict.Field])
	}
}

// objectWrites merges the changes of each object. It leaves out objects whose last write was not inspected or not
// stored: deletions and dry runs.
func (r *request) objectWrites(changes []guard.Change) (writes []objectWrite) {
	stored := map[guard.Object]guard.State{}
	for object, state := range r.journal.Written {
		stored[object] = state
	}
	places := map[guard.Object]int{}
	for _, change := range changes {
		if change.Before == nil || change.After == nil {
			continue
		}
		place, ok := places[change.Object]
		if !ok {
			place = len(writes)
			places[change.Object] = place
			writes = append(writes, objectWrite{Change: change, before: metaOf(change.Before)})
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
		if changesField(change.Subresource, path) && sent != nil && hash(sent) != hash(stored) {
			refused[path] = result{sent, stored}
		}
	}
	if len(refused) == 0 {
		return nil
	}
	for _, d := range difference.Between(comparable(change.Before), comparable(change.Requested)) {
		path := d.Field()
		before, sent := d.Values()
		if r, ok := refused[path]; ok && hash(before) != hash(sent) {
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

func (w objectWrite) changedFields() (fields []writtenField) {
	refused := map[string]bool{}
	for _, f := range w.fields {
		refused[f.path] = true
	}
	for _, d := range difference.Between(comparable(w.Before), comparable(w.After)) {
		path := d.Field()
		if before, after := d.Values(); !refused[path] && hash(before) != hash(after) {
			fields = append(fields, writtenField{path: path, before: before, is: after})
		}
	}
	return fields
}

// hashed returns the write with hashes of its values.
func (w objectWrite) hashed() hotloop.Write {
	hashed := hotloop.Write{Object: w.Object, Before: w.before.version, After: w.after.version}
	for _, f := range w.fields {
		hashed.Fields = append(hashed.Fields, hotloop.Field{
			Path: f.path, Before: hash(f.before), After: hash(f.is), Refused: f.refused, Requested: hash(f.sent),
		})
	}
	return hashed
}

// hash returns a hash of a value. It is 0 if the value is missing.
func hash(value any) uint64 {
	if value == nil {
		return 0
	}
	data, err := json.Marshal(value)
	if err != nil {
		data = fmt.Append(nil, value)
	}
	return hotloop.Hash(data)
}

// reportConflict logs and counts a conflict, and records an event.
func (r *request) reportConflict(
	ctx context.Context, root root, conflict hotloop.Conflict, w objectWrite, field writtenField,
) {
	secret := w.Kind.Kind == "Secret"
	within := conflict.Within.Round(time.Second).String()
	object := fmt.Sprintf("%s %s", w.Kind.Kind, w.Key)
	ours, other := writers(w.before.managers, w.after.managers, field.path)
	cause := causeWriter
	text := fmt.Sprintf("%s of %s changed back and forth %d times in %s: %s writes %s in step %s, %s writes %s",
		field.path, object, conflict.Times, within, ours, masked(field.is, secret), w.Step,
		other, masked(field.before, secret))
	if conflict.Refused {
		cause = causeRefused
		text = fmt.Sprintf("%s of %s is not stored as sent, %d times in %s: %s sends %s in step %s, "+
			"the API server stores %s, probably because of a mutating webhook",
			field.path, object, conflict.Times, within, ours, masked(field.sent, secret), w.Step, masked(field.is, secret))
	}

	hotLoops.WithLabelValues(root.name, cause).Inc()
	observe.ReportLoop(ctx, observe.LoopFound{
		Reconciles: conflict.Times, Within: conflict.Within, Repeats: []string{text},
	})
	logr.FromContextOrDiscard(ctx).Info("hot loop: two writers change a field back and forth, reconciles are delayed",
		"object", object, "field", field.path, "times", conflict.Times, "within", within, "conflict", text)
	r.announceLoop(root, reasonFieldConflict, text+"; further reconciles are delayed")
}

// masked describes a value without its content. The number identifies the value in this process. The status and reason
// of a condition are not masked.
func masked(value any, secret bool) string {
	if value == nil {
		return "no value"
	}
	number := hash(value) & 0xffff
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
