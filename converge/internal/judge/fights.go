// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"trueup.dev/converge/internal/finding"
	"trueup.dev/converge/internal/world"
	"trueup.dev/internal/memapi"
)

// Fight is a field that two writers change in turn.
type Fight struct {
	object, path string
	// writers are the last two, and revisions their changes of the field.
	writers   [2]world.Writer
	revisions []Revision
	values    []string
}

// LeastTurns is how often each of two writers must have changed a field after the other one, and SlowTurns how often
// within an hour of a Sleep.
const (
	LeastTurns = 2
	SlowTurns  = 3
)

// Contested reports whether an object has changed often enough for a fight. It spares most runs the comparison of
// fields.
func Contested(events []memapi.Event, changes int) bool {
	times := map[types.UID]int{}
	for _, e := range events {
		uid := e.Object.GetUID()
		if times[uid]++; times[uid] >= changes {
			return true
		}
	}
	return false
}

// FightIn returns the field that two writers have changed in turn most often, also in other turns than with each other.
func FightIn(revisions []Revision, turns int) (Fight, bool) {
	type fieldOf struct{ object, path string }
	fights := map[fieldOf]*Fight{}
	for _, r := range revisions {
		for _, f := range r.fields {
			at := fieldOf{r.Object, f.path}
			if fights[at] == nil {
				fights[at] = &Fight{object: r.Object, path: f.path}
			}
			fights[at].add(r, f)
		}
	}
	var found []*Fight
	for _, f := range fights {
		if len(f.revisions) >= 2*turns {
			found = append(found, f)
		}
	}
	if len(found) == 0 {
		return Fight{}, false
	}
	slices.SortFunc(found, func(a, b *Fight) int {
		return cmp.Or(
			-cmp.Compare(len(a.revisions), len(b.revisions)), strings.Compare(a.object, b.object),
			strings.Compare(a.path, b.path),
		)
	})
	return *found[0], true
}

// add adds a change. The turns of two writers begin again if a third one changes the field, or if one of them changes
// it twice.
func (f *Fight) add(r Revision, field fieldRevision) {
	n := len(f.revisions)
	if n > 0 && f.revisions[n-1].writer == r.writer || n > 1 && f.revisions[n-2].writer != r.writer {
		f.revisions, f.values = f.revisions[:0], f.values[:0]
	}
	f.writers[0], f.writers[1] = f.writers[1], r.writer
	f.revisions = append(f.revisions, r)
	f.values = append(f.values, r.value(field, field.to))
}

// message describes a fight.
func (f *Fight) message() string {
	last := f.values[max(0, len(f.values)-4):]
	return fmt.Sprintf(
		"%s and %s change %s of %s in turn: %s, …", textOf(f.writers[0], f.writers[1]),
		textOf(f.writers[1], f.writers[0]), f.path,
		f.object, strings.Join(last, ", "),
	)
}

// details describes the last changes.
func (f *Fight) details(h History) []string {
	var lines []string
	for _, r := range f.revisions[max(0, len(f.revisions)-4):] {
		other := f.writers[0]
		if r.writer == other {
			other = f.writers[1]
		}
		lines = append(lines, textOf(r.writer, other)+": "+r.effect()+h.reason(r))
	}
	return lines
}

// Violation returns the violation of an oracle for a fight.
func (f *Fight) Violation(h History, oracle finding.Oracle, prefix string) finding.Violation {
	return finding.Violation{
		Oracle: oracle, Cause: finding.CauseFight, About: f.object, Message: prefix + f.message(), Details: f.details(h),
	}
}
