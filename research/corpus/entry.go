// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"slices"

	"trueup.dev/converge"
)

// Entry is a bug, and the same reconciler without it.
type Entry struct {
	// Name is unique.
	Name string
	// Class is that of the bug, "C1" to "C15", and empty for what is only correct.
	Class string
	// About tells in a sentence what goes wrong, or what makes it correct.
	About string
	// Source is the real bug that it is modelled on, or where the correct way is described.
	Source string
	// Faults is how many it takes to see the bug.
	Faults int
	// Buggy and Correct are the same scenario but for the reconciler, or how it is wired. Buggy is nil for what is only
	// correct.
	Buggy, Correct func() converge.Scenario
}

// All returns all entries, in the order of their classes.
func All() []Entry {
	return slices.Concat(
		c01, c02, c03, c04, c05, c06, c07, c08, c09, c10, c11, c12, c13, c14, c15, correct,
	)
}
