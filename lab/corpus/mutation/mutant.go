// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"cmp"
	"fmt"

	"trueup.dev/lab/corpus"
)

// Mistake is the mistake of a mutant at its site.
type Mistake string

const (
	// Drop omits a write, and continues as if it had succeeded.
	Drop Mistake = "drop"
	// Double writes twice. The result of the second write is ignored.
	Double Mistake = "double"
	// Late defers the writes of the site until after the next write of another site in the same reconcile, or to its
	// end.
	Late Mistake = "late"
	// IgnoreError continues after an error as if there had been none. It is used for reads only if the run without
	// faults has errors.
	IgnoreError Mistake = "ignore error"
	// NoOwner sets no owner references. It is used for updates and patches only if no object of the kind is created.
	NoOwner Mistake = "no owner"
	// NoFinalizer sets no finalizers.
	NoFinalizer Mistake = "no finalizer"
	// NoLabels sets no labels. It is used for updates and patches only if no object of the kind is created.
	NoLabels Mistake = "no labels"
	// NoVersion writes regardless of the version of the object. If the API server requires a version, it uses the
	// current one.
	NoVersion Mistake = "no version"
	// NoPrecondition deletes any object with the name.
	NoPrecondition Mistake = "no precondition"
	// NoPropagation leaves the propagation policy of a deletion to the API server.
	NoPropagation Mistake = "no propagation"
)

// Site is where a reconciler makes requests.
type Site struct {
	// Verb is get, list, create, update, patch, apply, delete or delete all.
	Verb string
	// Kind is the kind of the objects, followed by a slash and the subresource, if any.
	Kind string
}

func (s Site) String() string { return s.Verb + " " + s.Kind }

// Mutant is a correct reconciler with a mistake.
type Mutant struct {
	Entry corpus.Entry
	Site
	Mistake

	// twin is the state that the correct reconciler reaches.
	twin *recording
}

// Name is unique, for example "c02-adopted: drop create ConfigMap".
func (m Mutant) Name() string { return fmt.Sprintf("%s: %s at %s", m.Entry.Name, m.Mistake, m.Site) }

func compareMutants(a, b Mutant) int {
	return cmp.Or(cmp.Compare(a.String(), b.String()), cmp.Compare(a.Mistake, b.Mistake))
}
