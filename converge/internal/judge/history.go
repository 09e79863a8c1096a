// SPDX-License-Identifier: Apache-2.0

// Package judge has the oracles, one type each in oracle_*.go, which oracles.go calls. They see the world and its
// trace, how often requests are reconciled ([Pace]), and what the scenario requires ([Case]), with the runs without
// faults that others are compared with ([Reference]). They do not know how processes are executed.
//
// They also find in what has happened to the objects of a run who is to blame: writers that change the same field in
// turn, writers each of which leads to the next change of another one, and objects that wait for each other to be
// deleted.
package judge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/phrase"
	"trueup.dev/converge/internal/state"
	"trueup.dev/converge/internal/world"
	"trueup.dev/internal/memapi"
)

// History is what has happened to the objects of a run, and who has changed them.
type History struct {
	Server  *memapi.Server
	Names   state.GeneratedNames
	Reader  state.Reader
	Authors []world.Authored
	// IsProgram reports whether a client is the client of a program.
	IsProgram func(client string) bool
	// Released reports whether a program or an actor has removed a finalizer, in this run or without faults. Optional.
	Released func(FinalizerOf) bool
}

// Revision is a change of an object: who has changed which fields, and which event has led to that.
type Revision struct {
	event  memapi.Event
	writer world.Writer
	// Object names the object.
	Object string
	fields []fieldRevision
	// cause is the version of the event that the reconcile was requested for, or 0.
	cause int64
	// At is the time of the change, or of the last one by a program before it.
	At time.Time
}

// fieldRevision is a change of a field. A field that does not exist is "".
type fieldRevision struct{ path, from, to string }

// longestValue limits the text of a value.
const longestValue = 60

// mostFieldsShown limits the fields in the text of a change.
const mostFieldsShown = 2

// MostRevisions limits how many changes are compared to find what goes on without end.
const MostRevisions = 120

// Revisions returns the last changes after a version by programs and actors, without those that create or delete.
func (h History) Revisions(after int64) []Revision {
	events := h.Server.Events(after)
	events = events[max(0, len(events)-MostRevisions):]
	var found []Revision
	var at time.Time
	for _, e := range events {
		if e.Client == phrase.User || e.Client == phrase.AnotherClient || e.Client == phrase.GarbageCollector {
			continue
		}
		r := Revision{event: e, writer: world.Writer{Client: e.Client}, Object: h.Names.Thing(e.Kind, e.Object).String()}
		if author, ok := h.authorOf(e.Version); ok {
			at = author.At
			r.writer, r.cause = author.By.Writer(e.Client), author.By.Cause
		}
		r.At = at
		if e.Type == watch.Modified {
			r.fields = h.changedFields(e)
		}
		found = append(found, r)
	}
	return found
}

// authorOf returns the reconcile that has made a change.
func (h History) authorOf(version int64) (world.Authored, bool) {
	authors := h.Authors
	at, _ := slices.BinarySearchFunc(authors, version, func(a world.Authored, version int64) int {
		return cmp.Compare(a.To, version)
	})
	if at == len(authors) || authors[at].From >= version {
		return world.Authored{}, false
	}
	return authors[at], true
}

// changedFields lists the fields that a change has changed, in the order of their paths.
func (h History) changedFields(e memapi.Event) []fieldRevision {
	replace := &state.Replacer{UIDs: strings.NewReplacer(), Names: h.Names}
	before, after := h.Reader.FieldsOf(e.Kind, e.Old, replace), h.Reader.FieldsOf(e.Kind, e.Object, replace)
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

// textOf names a writer, in contrast to another one.
func textOf(w, other world.Writer) string {
	switch {
	case w.Client != other.Client || w.Controller == "" && w.Key == other.Key:
		return w.Client
	case w.Controller != other.Controller:
		return "controller " + w.Controller
	case w.Controller == "":
		return w.Client + " for " + phrase.Name(w.Key)
	}
	return "controller " + w.Controller + " for " + phrase.Name(w.Key)
}

// value formats the value of a field of an object.
func (r Revision) value(f fieldRevision, value string) string {
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
func (r Revision) effect() string {
	text := inject.EventNames[r.event.Type] + " " + r.Object
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
func (h History) causeOf(r Revision) (memapi.Event, bool) {
	if r.cause == 0 {
		return memapi.Event{}, false
	}
	events := h.Server.Events(r.cause - 1)
	if len(events) == 0 || events[0].Version != r.cause {
		return memapi.Event{}, false
	}
	return events[0], true
}

// reason describes the event that has led to a revision, or returns "".
func (h History) reason(r Revision) string {
	e, ok := h.causeOf(r)
	if !ok {
		return ""
	}
	return fmt.Sprintf(", because of %s %s by %s", inject.EventNames[e.Type], h.Names.Thing(e.Kind, e.Object), e.Client)
}
