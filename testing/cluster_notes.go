// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// clusterWarnings notes what the server warns of.
type clusterWarnings struct{ *clusterAPI }

// HandleWarningHeaderWithContext implements [rest.WarningHandlerWithContext].
func (w clusterWarnings) HandleWarningHeaderWithContext(_ context.Context, code int, _, text string) {
	// The only one that there is.
	if code == 299 && text != "" {
		w.note("the API warns: %s", text)
	}
}

// note adds to what is said about a case that fails, once.
func (a *clusterAPI) note(format string, args ...any) {
	a.lock.Lock()
	defer a.lock.Unlock()
	if text := fmt.Sprintf(format, args...); !slices.Contains(a.notes, text) {
		a.notes = append(a.notes, text)
	}
}

// noteForeignWrite notes who else has written to an object of the case. What they have written is not shown, or cases
// would depend on whether they were faster.
func (r *record) noteForeignWrite(live *unstructured.Unstructured) {
	if live.GetResourceVersion() == r.current().real || r.borrowed {
		return
	}
	for name, written := range writersOf(live) {
		// The fields that others have taken over are missing from ours.
		if r.writers[name] != written && !strings.HasPrefix(name, clusterManager) {
			r.others[name] = true
		}
	}
	if len(r.others) == 0 {
		r.others["others"] = true
	}
}

// writersOf returns the field managers of an object, with what they have written and when.
func writersOf(live *unstructured.Unstructured) map[string]string {
	writers := map[string]string{}
	for _, entry := range live.GetManagedFields() {
		name := strings.TrimSuffix(entry.Manager+"/"+entry.Subresource, "/")
		writers[name] += fmt.Sprint(entry.Time, entry.FieldsV1)
	}
	return writers
}

// normalized implements [api.normalized].
func (a *clusterAPI) normalized() []string {
	a.lock.Lock()
	defer a.lock.Unlock()
	notes := slices.Clone(a.notes)
	for _, rec := range a.ordered {
		if len(rec.others) > 0 {
			names := strings.Join(slices.Sorted(maps.Keys(rec.others)), ", ")
			notes = append(
				notes, fmt.Sprintf("%s: changed by %s while the case ran, which the case does not see", rec.id, names),
			)
		}
	}
	listed := map[objectID]bool{}
	for _, rec := range a.ordered {
		if listed[rec.id] || !rec.changed && len(a.notCompared[rec.id]) == 0 {
			continue
		}
		listed[rec.id] = true
		var lines []string
		for _, e := range a.exchanges[rec.id] {
			for _, field := range additions("", e.sent, e.got) {
				if slices.Contains(a.notCompared[rec.id], field) {
					field += " (not compared)"
				}
				if !slices.Contains(lines, field) {
					lines = append(lines, field)
				}
			}
		}
		if len(lines) > 0 {
			notes = append(notes, fmt.Sprintf("%s: the API has added\n\t%s", rec.id, strings.Join(lines, "\n\t")))
		}
	}
	return notes
}

// additions returns the fields that a server has added to what was sent.
func additions(path string, sent, got any) []string {
	if saysNothing(got) {
		return nil
	}
	if saysNothing(sent) && path != "" {
		return []string{fieldText(path, got)}
	}
	var added []string
	switch got := got.(type) {
	case map[string]any:
		sent, _ := sent.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(got)) {
			added = append(added, additions(fieldPath(path, name), sent[name], got[name])...)
		}
	case []any:
		for i := range got {
			e := exchange{sent: sent, got: got}.item(i)
			added = append(added, additions(fmt.Sprintf("%s[%d]", path, i), e.sent, e.got)...)
		}
	}
	return added
}
