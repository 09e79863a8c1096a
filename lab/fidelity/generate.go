// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"math/rand/v2"
)

// Length is the number of operations of a generated sequence.
const Length = 20

// A Generator generates sequences.
type Generator struct {
	// Kinds are the kinds in the sequences.
	Kinds []*Kind

	// Namespaces is the kind of namespaces. If it is set, some sequences delete their namespace.
	Namespaces *Kind
}

// generation generates one sequence. It first draws the features of the sequence, so that sequences differ more than if
// all had a little of everything.
type generation struct {
	*rand.Rand
	kinds      []*Kind
	names      []string
	made       map[string]bool // created or applied, and not deleted since
	namespaces *Kind
	themes     themes
}

// themes are the features of a sequence.
type themes struct {
	generated  bool // generated names; without pages, because their order is random
	applies    bool
	finalizers bool
	faults     bool
	dryRuns    bool
	forms      bool // other than typed

	// terminating is the kind of the namespace of the sequence if the sequence deletes it, else nil.
	terminating *Kind
}

// Sequence returns the sequence of a seed.
func (g Generator) Sequence(seed uint64) Sequence {
	r := rand.New(rand.NewPCG(seed, 7))
	s := &generation{Rand: r, names: []string{"a", "b", "c"}[:1+r.IntN(3)], made: map[string]bool{}}
	s.kinds = []*Kind{g.Kinds[r.IntN(len(g.Kinds))]}
	if r.IntN(3) == 0 {
		s.kinds = append(s.kinds, g.Kinds[r.IntN(len(g.Kinds))])
	}
	s.themes = themes{
		generated: s.one(4), applies: s.one(2), finalizers: s.one(2), faults: s.one(2), dryRuns: s.one(3), forms: s.one(2),
	}
	s.namespaces = g.Namespaces
	if r.IntN(12) == 0 {
		s.themes.terminating = g.Namespaces
	}
	var sequence Sequence
	for range Length {
		if s.themes.terminating != nil && s.one(5) {
			sequence = append(sequence, s.termination())
			continue
		}
		o := s.operation()
		key := o.Kind.Kind + "/" + o.Name
		// Too many operations would have no effect.
		if !s.made[key] && o.Subresource != "eviction" && o.Verb != Send && o.Verb != List && o.Verb != DeleteAllOf &&
			o.Verb != Apply && o.Name != "" && o.Name[0] != '$' && !s.one(6) {
			o.Subresource, o.Patch, o.Tests, o.Edits, o.Base, o.UID, o.Version, o.Propagation, o.Grace =
				"", "", nil, nil, Blank, "", "", "", nil
			if s.create(&o); o.Form == Metadata {
				o.Form = Unstructured
			}
		}
		switch o.Verb {
		case Create, Apply:
			s.made[o.Kind.Kind+"/"+o.Name] = !o.DryRun
		case Delete:
			s.made[key] = s.themes.finalizers || o.DryRun
		}
		sequence = append(sequence, o)
	}
	return sequence
}

// termination draws an operation on the namespace of the sequence.
func (s *generation) termination() Operation {
	o := Operation{
		Kind: s.themes.terminating, Name: string(TokenNamespace), Verb: pick(s, Get, Get, Delete, Patch, Update),
	}
	switch o.Verb {
	case Patch:
		o.Patch, o.Edits = MergePatch, s.some(metadataChanges)
	case Update:
		o.Base, o.Edits = Live, s.some(metadataChanges)
	}
	return o
}

// one returns true with a probability of 1/n.
func (s *generation) one(n int) bool { return s.IntN(n) == 0 }

func pick[T any](s *generation, of ...T) T { return of[s.IntN(len(of))] }

// operation draws an operation.
func (s *generation) operation() Operation {
	o := Operation{Kind: pick(s, s.kinds...), Name: pick(s, s.names...)}
	if s.themes.generated && s.one(4) {
		o.Name = pick(s, "$1", "$1", "$2")
	}
	if s.themes.forms {
		o.Form = pick(s, Typed, Typed, Typed, Unstructured, Unstructured, Metadata)
	}
	if s.themes.dryRuns {
		o.DryRun = s.one(6)
	}
	if s.one(12) {
		o.Owner = pick(s, "alice", "bob")
	}
	if s.themes.faults && s.one(60) {
		o.Namespace = Nowhere
	}
	draws := []struct {
		weight int
		draw   func(*Operation)
	}{
		{16, s.create},
		{7, func(o *Operation) { o.Verb = Get }},
		{5, s.list},
		{20, s.update},
		{18, s.patch},
		{0, s.apply},
		{11, s.delete},
		{2, s.deleteAll},
		{6, s.updateStatus},
		{5, s.patchStatus},
		{0, s.applyStatus},
		{0, s.scale},
		{0, s.evict},
		{0, s.send},
	}
	if s.themes.faults {
		draws[13].weight = 8
	}
	if s.themes.applies {
		draws[5].weight, draws[10].weight = 18, 4
	}
	if o.Kind.Scale || s.one(20) {
		draws[11].weight = 5
	}
	if o.Kind.Evictions {
		draws[12].weight = 6
	}
	total := 0
	for _, d := range draws {
		total += d.weight
	}
	n := s.IntN(total)
	for _, d := range draws {
		if n -= d.weight; n < 0 {
			d.draw(&o)
			return o
		}
	}
	return o
}

// some draws a few of many edits.
func (s *generation) some(edits []Edit) (drawn []Edit) {
	for len(edits) > 0 && len(drawn) < 4 && s.one(len(drawn)+1) || len(drawn) == 0 && len(edits) > 0 && !s.one(3) {
		drawn = append(drawn, pick(s, edits...))
	}
	return drawn
}

// changes draws edits of an object, including invalid ones.
func (s *generation) changes(o *Operation) (drawn []Edit) {
	if !s.one(4) {
		drawn = append(drawn, s.some(o.Kind.Changes)...)
	}
	if s.one(2) {
		drawn = append(drawn, s.some(metadataChanges)...)
	}
	if s.themes.finalizers && s.one(3) {
		drawn = append(drawn, pick(s, finalizerChanges...))
	}
	if s.themes.faults && s.one(5) && len(o.Kind.Faults) > 0 {
		drawn = append(drawn, pick(s, o.Kind.Faults...))
	}
	if s.themes.faults && s.one(8) {
		drawn = append(drawn, pick(s, metadataFaults...))
	}
	if s.one(12) {
		drawn = append(drawn, s.some(o.Kind.StatusChanges)...)
	}
	return drawn
}

func (s *generation) create(o *Operation) {
	o.Verb, o.Edits = Create, s.changes(o)
	if o.Name[0] == '$' || s.themes.generated && s.one(2) {
		o.Name = ""
		o.Edits = append(o.Edits, Set("metadata/generateName", pick(s, "gen-", "gen-", "made.by.the-")))
		if o.Kind.ClusterScoped {
			o.Edits[len(o.Edits)-1] = Set("metadata/generateName", "gen-")
		}
	}
	if s.themes.faults && s.one(12) {
		o.Edits = append(o.Edits, pick(s, Set("metadata/resourceVersion", "1"),
			Set("metadata/resourceVersion", string(TokenVersion)), Set("metadata/uid", "made-up"),
			Set("metadata/name", ""), Set("metadata/namespace", "")))
	}
	if s.one(20) && !o.Kind.NoCopies {
		o.Base = Last
	}
}

func (s *generation) list(o *Operation) {
	o.Verb, o.Name, o.Namespace = List, "", ""
	s.selection(o)
	if !s.themes.generated && !o.Kind.ClusterScoped && s.one(3) { // pages of all sequences' objects are not of this one's
		o.Limit = int64(1 + s.IntN(2))
	}
}

func (s *generation) selection(o *Operation) {
	if s.one(2) {
		o.Labels = pick(s, "app=x", "app!=x", "app in (x,y)", "app", "!app", "app=y,tier", "app notin (y)")
	}
	if s.one(5) && !o.Kind.ClusterScoped {
		o.Fields = pick(
			s,
			append(
				[]string{"metadata.name=a", "metadata.name!=a", "metadata.namespace=default", "spec.unknown=1"},
				o.Kind.Selectors...,
			)...,
		)
	}
}

// base draws the base of an update.
func (s *generation) base(o *Operation) {
	o.Base = pick(s, Last, Last, Last, Last, Live, First, Blank)
	if s.one(10) {
		// Nor does it have the managed fields of that version, which only a real server has kept, and would take back.
		o.Edits = append(o.Edits, Remove("metadata/managedFields"), pick(s, Remove("metadata/resourceVersion"),
			Remove("metadata/resourceVersion"),
			Set("metadata/resourceVersion", "999999999999"), Set("metadata/resourceVersion", "not-a-version"),
			Set("metadata/resourceVersion", "0")))
	}
	if s.themes.faults && s.one(10) {
		o.Edits = append(o.Edits, pick(s, identityFaults...))
	}
}

func (s *generation) update(o *Operation) {
	o.Verb = Update
	if !s.one(8) { // else it changes nothing
		o.Edits = s.changes(o)
	}
	if o.Form == Metadata && !s.one(8) {
		o.Form = Unstructured
	}
	s.base(o)
}

func (s *generation) updateStatus(o *Operation) {
	o.Verb, o.Subresource, o.Form = Update, "status", pick(s, Typed, o.Form)
	if o.Form == Metadata {
		o.Form = Unstructured
	}
	if !o.Kind.Status && !s.one(4) {
		s.update(o)
		o.Subresource = ""
		return
	}
	o.Edits = s.statusChanges(o)
	s.base(o)
}

func (s *generation) statusChanges(o *Operation) (drawn []Edit) {
	drawn = s.some(o.Kind.StatusChanges)
	if s.one(4) {
		drawn = append(drawn, s.changes(o)...)
	}
	if s.themes.faults && s.one(6) && len(o.Kind.StatusFaults) > 0 {
		drawn = append(drawn, pick(s, o.Kind.StatusFaults...))
	}
	return drawn
}

func (s *generation) delete(o *Operation) {
	o.Verb = Delete
	if o.Kind == s.namespaces {
		return // another controller uses their propagation and grace period
	}
	if o.Form == Metadata && o.Kind.Untyped {
		o.Form = Unstructured // the client cannot read the answer
	}
	if s.one(5) {
		o.UID = pick(s, string(TokenUID), "00000000-0000-0000-0000-00000000dead")
	}
	if s.one(5) {
		o.Version = pick(s, string(TokenVersion), string(TokenVersion), string(TokenFirstVersion), "999999999999")
	}
	if s.one(3) {
		o.Propagation = pick(s, "Background", "Foreground", "Orphan")
	}
	if s.one(6) || o.Kind.Evictions && s.one(3) {
		o.Grace = new(pick[int64](s, 0, 0, 30, 60))
	}
	if s.themes.faults && s.one(20) {
		o.Propagation = "Sideways"
	}
}

func (s *generation) deleteAll(o *Operation) {
	if s.themes.generated { // their order is random
		s.delete(o)
		return
	}
	o.Verb, o.Name, o.Namespace = DeleteAllOf, "", ""
	s.selection(o)
	if s.one(4) && o.Kind != s.namespaces {
		o.Propagation = pick(s, "Background", "Foreground", "Orphan")
	}
}

func (s *generation) scale(o *Operation) {
	o.Subresource = "scale"
	o.Edits = []Edit{Set("spec/replicas", int64(1+s.IntN(4)))}
	if s.themes.faults && s.one(6) {
		o.Edits = append(o.Edits, pick(s, Set("spec/replicas", int64(-1)),
			Set("metadata/resourceVersion", string(TokenFirstVersion)),
			Set("metadata/resourceVersion", string(TokenVersion)), Set("metadata/uid", string(TokenUID)),
			Set("metadata/labels/app", "z")))
	}
	switch s.IntN(4) {
	case 0:
		o.Verb, o.Edits = Get, nil
	case 1:
		o.Verb, o.Patch = Patch, MergePatch
	default:
		o.Verb, o.Base = Update, pick(s, Live, Blank)
	}
}

func (s *generation) evict(o *Operation) {
	o.Verb, o.Subresource, o.Form = Create, "eviction", Typed
	if s.one(3) {
		o.Grace = new(pick[int64](s, 0, 30))
	}
}
