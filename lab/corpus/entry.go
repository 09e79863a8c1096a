// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"slices"

	"trueup.dev/converge"
)

// Entry is a bug, with the same reconciler without the bug.
type Entry struct {
	// Name is unique.
	Name string
	// Class is the class of the bug, "C1" to "C16". It is empty for entries without a bug.
	Class string
	// About describes in one or two sentences the bug, or the correct reconciler.
	About string
	// Source is the real bug that the entry is modeled on, or a description of the correct way.
	Source string
	// Faults is the number of faults that the bug needs.
	Faults int
	// Buggy and Correct differ only in the reconciler, or in how it is wired. Buggy is nil for entries without a bug.
	Buggy, Correct func() converge.Scenario
}

// All returns all entries, ordered by class.
func All() []Entry {
	return slices.Concat(
		c01, c02, c03, c04, c05, c06, c07, c08, c09, c10, c11, c12, c13, c14, c15, c16, correct,
	)
}
