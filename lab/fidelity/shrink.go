// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"slices"
)

// shrink returns the shortest and simplest failing sequence that it finds, starting with a failing one.
func shrink(sequence Sequence, fails func(Sequence) bool) Sequence {
	for size := len(sequence) / 2; size > 0; {
		shorter := false
		for from := 0; from+size <= len(sequence); {
			without := slices.Delete(slices.Clone(sequence), from, from+size)
			if fails(without) {
				sequence, shorter = without, true
			} else {
				from += size
			}
		}
		if !shorter {
			size /= 2
		}
	}
	for i := range sequence {
		for again := true; again; {
			again = false
			for _, simpler := range simplified(sequence[i]) {
				tried := slices.Clone(sequence)
				tried[i] = simpler
				if fails(tried) {
					sequence, again = tried, true
					break
				}
			}
		}
	}
	return sequence
}

// simplified returns slightly simpler versions of operations.
func simplified(o Operation) (simpler []Operation) {
	try := func(change func(*Operation)) {
		changed := o
		change(&changed)
		if changed.String() != o.String() {
			simpler = append(simpler, changed)
		}
	}
	for i := range o.Edits {
		try(func(o *Operation) { o.Edits = slices.Delete(slices.Clone(o.Edits), i, i+1) })
	}
	try(func(o *Operation) { o.Tests = nil })
	try(func(o *Operation) { o.Form = Typed })
	try(func(o *Operation) { o.DryRun = false })
	try(func(o *Operation) { o.Force = false })
	try(func(o *Operation) { o.Propagation = "" })
	try(func(o *Operation) { o.Grace = nil })
	try(func(o *Operation) { o.UID = "" })
	try(func(o *Operation) { o.Version = "" })
	try(func(o *Operation) { o.Labels = "" })
	try(func(o *Operation) { o.Fields = "" })
	try(func(o *Operation) { o.Limit = 0 })
	if o.Verb != Apply && o.Patch != ApplyPatch {
		try(func(o *Operation) { o.Owner = "" })
	}
	return simpler
}
