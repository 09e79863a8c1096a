// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// warnings records the warnings of the server.
type warnings struct{ *API }

// HandleWarningHeaderWithContext implements [rest.WarningHandlerWithContext].
func (w warnings) HandleWarningHeaderWithContext(_ context.Context, code int, _, text string) {
	// the only code that the API server sends
	if code == 299 && text != "" {
		w.note("the API warns: %s", text)
	}
}

// note adds a note, once, that is printed if the case fails.
func (a *API) note(format string, args ...any) {
	a.lock.Lock()
	defer a.lock.Unlock()
	if text := fmt.Sprintf(format, args...); !slices.Contains(a.notes, text) {
		a.notes = append(a.notes, text)
	}
}

// noteForeignWrite records which other clients have written to an object of the case. Their writes are hidden, because
// the result of the case would otherwise depend on timing.
func (r *record) noteForeignWrite(live *unstructured.Unstructured) {
	if live.GetResourceVersion() == r.current().real || r.borrowed {
		return
	}
	for name, written := range writersOf(live) {
		// fields that another manager has taken over are missing from ours
		if r.writers[name] != written && !strings.HasPrefix(name, manager) {
			r.others[name] = true
		}
	}
	if len(r.others) == 0 {
		r.others["others"] = true
	}
}

// writersOf returns the field managers of an object, with the fields and times of their writes.
func writersOf(live *unstructured.Unstructured) map[string]string {
	writers := map[string]string{}
	for _, entry := range live.GetManagedFields() {
		name := strings.TrimSuffix(entry.Manager+"/"+entry.Subresource, "/")
		writers[name] += fmt.Sprint(entry.Time, entry.FieldsV1)
	}
	return writers
}

// Notes returns what helps to understand a failed case: fields that the server added, writes of other clients,
// warnings.
func (a *API) Notes() []string {
	a.lock.Lock()
	defer a.lock.Unlock()
	notes := slices.Clone(a.notes)
	for _, rec := range a.ordered {
		if len(rec.others) > 0 {
			names := strings.Join(slices.Sorted(maps.Keys(rec.others)), ", ")
			notes = append(
				notes, fmt.Sprintf("%s: changed by %s while the case ran, which is hidden from the case", rec.id, names),
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
			notes = append(notes, fmt.Sprintf("%s: the API added\n\t%s", rec.id, strings.Join(lines, "\n\t")))
		}
	}
	return notes
}

// additions returns the fields that a server added to what was sent.
func additions(path string, sent, got any) []string {
	if isZeroOrEmpty(got) {
		return nil
	}
	if isZeroOrEmpty(sent) && path != "" {
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
