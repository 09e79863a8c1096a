// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// mostChanges limits the changed fields in a line of a timeline.
const mostChanges = 2

// changeOf describes what a write has changed, as far as a line has room for.
func (w *world) changeOf(c *call) string {
	for _, e := range slices.Backward(w.server.Events(w.forwarded)) {
		if e.Kind != c.gvk || e.Type != watch.Modified || e.Key != client.ObjectKeyFromObject(c.obj) {
			continue
		}
		nothing := &replacer{uids: strings.NewReplacer()}
		before, after := w.plan.fieldsOf(e.Kind, e.Old, nothing), w.plan.fieldsOf(e.Kind, e.Object, nothing)
		var changes []string
		for _, path := range sortedKeys(after) {
			if before[path] == after[path] {
				continue
			}
			value := after[path].value
			if e.Kind.Kind == "Secret" && strings.HasPrefix(path, "data") {
				value = "…" // logs must not contain secrets
			}
			changes = append(changes, path+" "+value)
		}
		for _, path := range sortedKeys(before) {
			if _, ok := after[path]; !ok {
				changes = append(changes, "no "+path)
			}
		}
		if len(changes) == 0 {
			return ""
		}
		return ": " + strings.Join(changes[:min(len(changes), mostChanges)], ", ")
	}
	return ""
}
