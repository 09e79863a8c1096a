// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"slices"
	"strings"

	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/world"
)

// Cycle is what repeats at the end of a run: the steps of one round.
type Cycle []Revision

// longestCycle limits the steps of a cycle, and leastRounds is how often it must have been repeated.
const (
	longestCycle = 12
	leastRounds  = 3
)

// CycleIn returns the shortest sequence of changes of several writers that is repeated at the end, if each of them
// reacts to another one. Values may differ each time.
func (h History) CycleIn(revisions []Revision) Cycle {
	n := len(revisions)
	for length := 2; length <= min(longestCycle, n/leastRounds); length++ {
		repeated := true
		for i := n - 1; i >= n-length*(leastRounds-1) && repeated; i-- {
			repeated = revisions[i].isLike(revisions[i-length])
		}
		if c := Cycle(revisions[n-length:]); repeated {
			if len(c.writers()) > 1 && c.reacts(h) {
				return c
			}
			return nil
		}
	}
	return nil
}

// reacts reports whether each program that takes part has made a change because of one of another writer. Actors only
// act on changes.
func (c Cycle) reacts(h History) bool {
	for _, writer := range c.writers() {
		if !h.IsProgram(writer.Client) {
			continue
		}
		if !slices.ContainsFunc(c, func(r Revision) bool {
			e, ok := h.causeOf(r)
			return r.writer == writer && ok && slices.ContainsFunc(c, func(other Revision) bool {
				return other.writer != writer && other.event.Kind == e.Kind && other.event.Key == e.Key
			})
		}) {
			return false
		}
	}
	return true
}

// isLike reports whether the same writer has changed the same fields of the same object.
func (r Revision) isLike(other Revision) bool {
	return r.writer == other.writer && r.Object == other.Object && r.event.Type == other.event.Type &&
		slices.EqualFunc(r.fields, other.fields, func(a, b fieldRevision) bool { return a.path == b.path })
}

// writers names those who take part, in the order of their steps.
func (c Cycle) writers() []world.Writer {
	var found []world.Writer
	for _, r := range c {
		if !slices.Contains(found, r.writer) {
			found = append(found, r.writer)
		}
	}
	return found
}

// name names the writer of a step, in contrast to the first other one.
func (c Cycle) name(w world.Writer) string {
	for _, other := range c.writers() {
		if other != w {
			return textOf(w, other)
		}
	}
	return w.Client
}

// Message describes a cycle in one line.
func (c Cycle) Message() string {
	var steps []string
	for _, r := range c {
		steps = append(steps, fmt.Sprintf("%s has %s %s", c.name(r.writer), inject.EventNames[r.event.Type], r.Object))
	}
	return "the same steps again and again: " + strings.Join(steps, "; ")
}

// Details describes each step.
func (c Cycle) Details(h History) []string {
	var lines []string
	for i, r := range c {
		lines = append(lines, fmt.Sprintf("step %d of the cycle, %s: %s%s", i+1, c.name(r.writer), r.effect(), h.reason(r)))
	}
	return lines
}
