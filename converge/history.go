// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/phrase"
	"trueup.dev/converge/internal/state"
	"trueup.dev/internal/memapi"
)

// eventHistory is what has happened to the objects of a run, and who has changed them.
type eventHistory struct {
	server  *memapi.Server
	names   state.GeneratedNames
	reader  state.Reader
	authors []authored
	// isProgram reports whether a client is that of a program.
	isProgram func(client string) bool
}

// author is a reconcile that makes changes.
type author struct {
	// controller and key are those of its request.
	controller string
	key        types.NamespacedName
	// cause is the version of the last event that has led to the request, or that would have during the reconcile, or 0.
	cause int64
}

// authored are the changes after a version, up to another one, that a reconcile has made.
type authored struct {
	from, to int64
	by       *author
	at       time.Time
}

// writer is who writes: a client and, if it is a program, the controller and the request of the reconcile.
type writer struct {
	client, controller string
	key                types.NamespacedName
}

// revision is a change of an object: who has changed which fields, and which event has led to that.
type revision struct {
	event  memapi.Event
	writer writer
	// object names the object.
	object string
	fields []fieldRevision
	// cause is the version of the event that the reconcile was requested for, or 0.
	cause int64
	// at is the time of the change, or of the last one by a program before it.
	at time.Time
}

// fieldRevision is a change of a field. A field that does not exist is "".
type fieldRevision struct{ path, from, to string }

// longestValue limits the text of a value.
const longestValue = 60

// mostFieldsShown limits the fields in the text of a change.
const mostFieldsShown = 2

// mostRevisions limits how many changes are compared to find what goes on without end.
const mostRevisions = 120

// revisions returns the last changes after a version by programs and actors, without those that create or delete.
func (h eventHistory) revisions(after int64) []revision {
	events := h.server.Events(after)
	events = events[max(0, len(events)-mostRevisions):]
	var found []revision
	var at time.Time
	for _, e := range events {
		if e.Client == phrase.User || e.Client == phrase.AnotherClient || e.Client == phrase.GarbageCollector {
			continue
		}
		r := revision{event: e, writer: writer{client: e.Client}, object: h.names.Thing(e.Kind, e.Object).String()}
		if author, ok := h.authorOf(e.Version); ok {
			at = author.at
			r.writer, r.cause = author.by.writer(e.Client), author.by.cause
		}
		r.at = at
		if e.Type == watch.Modified {
			r.fields = h.changedFields(e)
		}
		found = append(found, r)
	}
	return found
}

// authorOf returns the reconcile that has made a change.
func (h eventHistory) authorOf(version int64) (authored, bool) {
	authors := h.authors
	at, _ := slices.BinarySearchFunc(authors, version, func(a authored, version int64) int {
		return cmp.Compare(a.to, version)
	})
	if at == len(authors) || authors[at].from >= version {
		return authored{}, false
	}
	return authors[at], true
}

// writer returns the reconcile of a client as a writer.
func (a *author) writer(client string) writer { return writer{client, a.controller, a.key} }

// changedFields lists the fields that a change has changed, in the order of their paths.
func (h eventHistory) changedFields(e memapi.Event) []fieldRevision {
	replace := &state.Replacer{Uids: strings.NewReplacer(), Names: h.names}
	before, after := h.reader.FieldsOf(e.Kind, e.Old, replace), h.reader.FieldsOf(e.Kind, e.Object, replace)
	all := maps.Clone(before)
	maps.Copy(all, after)
	var found []fieldRevision
	for _, path := range phrase.SortedKeys(all) {
		if from, to := before[path].Value, after[path].Value; from != to {
			found = append(found, fieldRevision{path, from, to})
		}
	}
	return found
}

// text names a writer, in contrast to another one.
func (w writer) text(other writer) string {
	switch {
	case w.client != other.client || w.controller == "" && w.key == other.key:
		return w.client
	case w.controller != other.controller:
		return "controller " + w.controller
	case w.controller == "":
		return w.client + " for " + phrase.Name(w.key)
	}
	return "controller " + w.controller + " for " + phrase.Name(w.key)
}

// value formats the value of a field of an object.
func (r revision) value(f fieldRevision, value string) string {
	switch {
	case value == "":
		return "absent"
	case r.event.Kind.Kind == "Secret" && (strings.HasPrefix(f.path, "data") || strings.HasPrefix(f.path, "stringData")):
		return "…" // logs must not contain secrets
	case strings.HasPrefix(f.path, "metadata.ownerReferences["):
		value, _, _ = strings.Cut(value, ", ") // without the UID
	case len(value) > longestValue:
		return value[:longestValue] + "…"
	}
	return value
}

// effect describes a revision.
func (r revision) effect() string {
	text := inject.EventNames[r.event.Type] + " " + r.object
	for i, f := range r.fields {
		if i == mostFieldsShown {
			return text + fmt.Sprintf(", %d more", len(r.fields)-i)
		}
		separator := ", "
		if i == 0 {
			separator = ": "
		}
		text += separator + f.path + " " + r.value(f, f.to)
	}
	return text
}

// causeOf returns the event that has led to a revision.
func (h eventHistory) causeOf(r revision) (memapi.Event, bool) {
	if r.cause == 0 {
		return memapi.Event{}, false
	}
	events := h.server.Events(r.cause - 1)
	if len(events) == 0 || events[0].Version != r.cause {
		return memapi.Event{}, false
	}
	return events[0], true
}

// reason describes the event that has led to a revision, or returns "".
func (h eventHistory) reason(r revision) string {
	e, ok := h.causeOf(r)
	if !ok {
		return ""
	}
	return fmt.Sprintf(", because of %s %s by %s", inject.EventNames[e.Type], h.names.Thing(e.Kind, e.Object), e.Client)
}
