// SPDX-License-Identifier: Apache-2.0

// Package mutation makes mistakes in the correct reconcilers of the corpus, one at a time, and checks whether converge
// finds them.
//
// A mutant is a reconciler whose client makes one mistake at one site: in all requests of a verb, a kind and a
// subresource. [Of] lists the mutants of an entry, and [Mutant.Check] searches for a failure. A mutant that is not
// found is a survivor, and [Reasons] has a reason for each survivor.
//
// Reconcilers are not recompiled: a mutant changes the requests as a mistake in the code would.
package mutation
