// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"trueup.dev/converge/internal/phrase"
	"trueup.dev/converge/internal/state"
	"trueup.dev/converge/internal/world"
	"trueup.dev/internal/memapi"
)

// WebhookFight returns the last field that a program changes and a webhook changes back, or to something else, each
// time.
func (h History) WebhookFight(mutations []world.Mutation) (Fight, bool) {
	type fieldOf struct{ hook, object, path string }
	fights := map[fieldOf]*Fight{}
	var last *Fight
	for _, m := range mutations {
		stored, sent, mutated := h.fieldsIn(m, m.Stored), h.fieldsIn(m, m.Sent), h.fieldsIn(m, m.Mutated)
		for _, path := range phrase.SortedKeys(sent) {
			if sent[path].Value == stored[path].Value || sent[path].Value == mutated[path].Value {
				continue
			}
			at := fieldOf{m.Hook, m.Kind.Kind + " " + m.Key, path}
			f := fights[at]
			if f == nil {
				f = &Fight{object: at.object, path: path}
				fights[at] = f
			}
			f.writers = [2]world.Writer{m.Writer, {Client: "webhook " + m.Hook}}
			r := Revision{event: memapi.Event{Kind: m.Kind}}
			field := fieldRevision{path: path}
			f.values = append(f.values, r.value(field, sent[path].Value), r.value(field, mutated[path].Value))
			if len(f.values) >= 2*LeastTurns {
				last = f
			}
		}
	}
	if last == nil {
		return Fight{}, false
	}
	return *last, true
}

// fieldsIn lists the fields of an object of a mutation.
func (h History) fieldsIn(m world.Mutation, encoded []byte) state.Fields {
	obj := &unstructured.Unstructured{}
	if err := json.Unmarshal(encoded, &obj.Object); err != nil || obj.Object == nil {
		return nil
	}
	return h.Reader.FieldsOf(m.Kind, obj, &state.Replacer{UIDs: strings.NewReplacer(), Names: h.Names})
}
