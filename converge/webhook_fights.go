// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"trueup.dev/converge/internal/phrase"
	"trueup.dev/converge/internal/state"
	"trueup.dev/internal/memapi"
)

// mutation is a write of a program that a webhook has changed.
type mutation struct {
	hook   string
	writer writer
	kind   schema.GroupVersionKind
	key    string
	// stored, sent and mutated are the object before the write, the one that the program has sent, and the one that the
	// webhook has made of it.
	stored, sent, mutated []byte
}

// webhookFight returns the last field that a program changes and a webhook changes back, or to something else, each
// time.
func (h eventHistory) webhookFight(mutations []mutation) (fight, bool) {
	type fieldOf struct{ hook, object, path string }
	fights := map[fieldOf]*fight{}
	var last *fight
	for _, m := range mutations {
		stored, sent, mutated := h.fieldsIn(m, m.stored), h.fieldsIn(m, m.sent), h.fieldsIn(m, m.mutated)
		for _, path := range phrase.SortedKeys(sent) {
			if sent[path].Value == stored[path].Value || sent[path].Value == mutated[path].Value {
				continue
			}
			at := fieldOf{m.hook, m.kind.Kind + " " + m.key, path}
			f := fights[at]
			if f == nil {
				f = &fight{object: at.object, path: path}
				fights[at] = f
			}
			f.writers = [2]writer{m.writer, {client: "webhook " + m.hook}}
			r := revision{event: memapi.Event{Kind: m.kind}}
			field := fieldRevision{path: path}
			f.values = append(f.values, r.value(field, sent[path].Value), r.value(field, mutated[path].Value))
			if len(f.values) >= 2*leastTurns {
				last = f
			}
		}
	}
	if last == nil {
		return fight{}, false
	}
	return *last, true
}

// fieldsIn lists the fields of an object of a mutation.
func (h eventHistory) fieldsIn(m mutation, encoded []byte) state.Fields {
	obj := &unstructured.Unstructured{}
	if err := json.Unmarshal(encoded, &obj.Object); err != nil || obj.Object == nil {
		return nil
	}
	return h.reader.FieldsOf(m.kind, obj, &state.Replacer{Uids: strings.NewReplacer(), Names: h.names})
}
