// SPDX-License-Identifier: Apache-2.0

package fidelity

func (s *generation) patch(o *Operation) {
	o.Verb = Patch
	s.patchOf(o, s.changes(o))
	if s.themes.faults && s.one(10) {
		o.Tests, o.Edits = nil, []Edit{s.foreign()}
		if !o.Kind.Custom && s.one(3) { // the error about a custom object quotes all of it
			o.Edits = []Edit{pick(s, noKind...)}
		}
	}
}

func (s *generation) patchStatus(o *Operation) {
	if !o.Kind.Status && !s.one(4) {
		s.patch(o)
		return
	}
	o.Verb, o.Subresource = Patch, "status"
	s.patchOf(o, s.statusChanges(o))
}

// patchOf returns a patch with edits.
func (s *generation) patchOf(o *Operation, edits []Edit) {
	o.Edits = edits
	o.Patch = pick(s, JSONPatch, MergePatch, MergePatch, StrategicPatch)
	if !o.Kind.Strategic && o.Patch == StrategicPatch && !s.one(6) {
		o.Patch = MergePatch
	}
	if s.one(5) && o.Patch != JSONPatch {
		o.Edits = append(o.Edits, pick(s, Set("metadata/resourceVersion", string(TokenVersion)),
			Set("metadata/resourceVersion", string(TokenFirstVersion)),
			Set("metadata/uid", string(TokenUID)), Set("metadata/uid", "00000000-0000-0000-0000-00000000dead")))
	}
	if o.Patch != StrategicPatch {
		// Elements of lists by their key are for strategic merge patches; the others take the first, and a whole list.
		edits := o.Edits[:0:0]
		for _, e := range o.Edits {
			if o.Patch == JSONPatch || !hasElement(e) {
				edits = append(edits, e)
			}
		}
		o.Edits = edits
	}
	if o.Patch == JSONPatch && s.one(3) {
		o.Tests = []Edit{pick(s, Set("metadata/resourceVersion", string(TokenVersion)),
			Set("metadata/resourceVersion", string(TokenFirstVersion)),
			Set("metadata/uid", string(TokenUID)), Set("metadata/labels/app", "x"), Set("metadata/name", "a"))}
	}
}

func hasElement(e Edit) bool {
	for _, part := range e.parts() {
		if _, _, ok := element(part); ok {
			return true
		}
	}
	return false
}

func (s *generation) apply(o *Operation) {
	o.Verb, o.Form = Apply, Typed
	if s.one(6) {
		o.Verb, o.Patch, o.Form = Patch, ApplyPatch, pick(s, Typed, Unstructured)
	}
	if o.Name[0] == '$' {
		o.Name = "a"
	}
	o.Owner, o.Force = pick(s, "alice", "alice", "bob", ""), s.one(3)
	if o.Owner == "" && !s.one(10) {
		o.Owner = "bob"
	}
	if !s.one(4) {
		o.Edits = append(o.Edits, s.some(o.Kind.Changes)...)
	}
	if s.one(2) {
		o.Edits = append(o.Edits, s.some(metadataChanges)...)
	}
	if s.themes.finalizers && s.one(4) {
		o.Edits = append(o.Edits, pick(s, finalizerChanges...))
	}
	if s.themes.faults && s.one(8) {
		o.Edits = append(o.Edits, pick(s, append(identityFaults, Set("metadata/resourceVersion", string(TokenVersion)),
			Set("metadata/resourceVersion", string(TokenFirstVersion)), Set("metadata/uid", string(TokenUID)))...))
	}
	if s.themes.faults && s.one(6) && len(o.Kind.Faults) > 0 {
		o.Edits = append(o.Edits, pick(s, o.Kind.Faults...))
	}
	// An apply has no fields to remove.
	edits := o.Edits[:0:0]
	for _, e := range o.Edits {
		if e.Value != nil {
			edits = append(edits, e)
		}
	}
	o.Edits = edits
}

func (s *generation) applyStatus(o *Operation) {
	s.apply(o)
	if o.Kind.Status || s.one(5) {
		o.Subresource = "status"
		if o.Edits = s.some(o.Kind.StatusChanges); s.one(5) {
			o.Edits = append(o.Edits, s.some(o.Kind.Changes)...)
		}
	}
}
