// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"cmp"
	"fmt"

	"trueup.dev/research/corpus"
)

// Mistake is what a mutant does at its site.
type Mistake string

const (
	// Drop leaves a write out, and goes on as if it had succeeded.
	Drop Mistake = "drop"
	// Double writes twice. What becomes of the second time is ignored.
	Double Mistake = "double"
	// Late makes the writes of the site after the next write of another site in the same reconcile, or else at its end.
	Late Mistake = "late"
	// IgnoreError goes on after an error as if there had been none. For reads it counts only where the run without faults
	// has errors.
	IgnoreError Mistake = "ignore error"
	// NoOwner sets no owner references. Updates and patches count only if nothing of the kind is created.
	NoOwner Mistake = "no owner"
	// NoFinalizer sets no finalizers.
	NoFinalizer Mistake = "no finalizer"
	// NoLabels sets no labels. Updates and patches count only if nothing of the kind is created.
	NoLabels Mistake = "no labels"
	// NoVersion writes whatever the version of the object is meanwhile. Where the API server wants a version, it takes the
	// one that is there just before.
	NoVersion Mistake = "no version"
	// NoPrecondition deletes whatever has the name.
	NoPrecondition Mistake = "no precondition"
	// NoPropagation leaves it to the API server what becomes of the objects that belong to what is deleted.
	NoPropagation Mistake = "no propagation"
)

// Site is where a reconciler makes requests.
type Site struct {
	// Verb is get, list, create, update, patch, apply, delete or delete all.
	Verb string
	// Kind is that of the objects, with a slash and the sub resource if there is one.
	Kind string
}

func (s Site) String() string { return s.Verb + " " + s.Kind }

// Mutant is a correct reconciler with a mistake.
type Mutant struct {
	Entry corpus.Entry
	Site
	Mistake

	// twin is what the correct one comes to.
	twin *recording
}

// Name is unique, for example "c02-adopted: drop create ConfigMap".
func (m Mutant) Name() string { return fmt.Sprintf("%s: %s at %s", m.Entry.Name, m.Mistake, m.Site) }

func compareMutants(a, b Mutant) int {
	return cmp.Or(cmp.Compare(a.String(), b.String()), cmp.Compare(a.Mistake, b.Mistake))
}
