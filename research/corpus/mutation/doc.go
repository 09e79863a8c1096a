// SPDX-License-Identifier: Apache-2.0

// Package mutation makes mistakes in the correct reconcilers of the corpus, one at a time, and looks whether converge
// finds them.
//
// A mutant is a reconciler whose client does one thing otherwise at one site: all requests of a verb, a kind and a sub
// resource. [Of] lists those of an entry, and [Mutant.Check] looks for a failure. A mutant that is not found is a
// survivor, and [Reasons] has a reason for each.
//
// Reconcilers are not recompiled, so a mutant is what a mistake in the code would do to its requests.
package mutation
