// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"
	"slices"
	"strings"

	"trueup.dev/converge/internal/inject"
)

// cycle is what repeats at the end of a run: the steps of one round.
type cycle []revision

// longestCycle limits the steps of a cycle, and leastRounds is how often it must have been repeated.
const (
	longestCycle = 12
	leastRounds  = 3
)

// cycleIn returns the shortest sequence of changes of several writers that is repeated at the end, if each of them
// reacts to another one. Values may differ each time.
func (h eventHistory) cycleIn(revisions []revision) cycle {
	n := len(revisions)
	for length := 2; length <= min(longestCycle, n/leastRounds); length++ {
		repeated := true
		for i := n - 1; i >= n-length*(leastRounds-1) && repeated; i-- {
			repeated = revisions[i].isLike(revisions[i-length])
		}
		if c := cycle(revisions[n-length:]); repeated {
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
func (c cycle) reacts(h eventHistory) bool {
	for _, writer := range c.writers() {
		if !h.isProgram(writer.client) {
			continue
		}
		if !slices.ContainsFunc(c, func(r revision) bool {
			e, ok := h.causeOf(r)
			return r.writer == writer && ok && slices.ContainsFunc(c, func(other revision) bool {
				return other.writer != writer && other.event.Kind == e.Kind && other.event.Key == e.Key
			})
		}) {
			return false
		}
	}
	return true
}

// isLike reports whether the same writer has changed the same fields of the same object.
func (r revision) isLike(other revision) bool {
	return r.writer == other.writer && r.object == other.object && r.event.Type == other.event.Type &&
		slices.EqualFunc(r.fields, other.fields, func(a, b fieldRevision) bool { return a.path == b.path })
}

// writers names those who take part, in the order of their steps.
func (c cycle) writers() []writer {
	var found []writer
	for _, r := range c {
		if !slices.Contains(found, r.writer) {
			found = append(found, r.writer)
		}
	}
	return found
}

// name names the writer of a step, in contrast to the first other one.
func (c cycle) name(w writer) string {
	for _, other := range c.writers() {
		if other != w {
			return w.text(other)
		}
	}
	return w.client
}

// message describes a cycle in one line.
func (c cycle) message() string {
	var steps []string
	for _, r := range c {
		steps = append(steps, fmt.Sprintf("%s has %s %s", c.name(r.writer), inject.EventNames[r.event.Type], r.object))
	}
	return "the same steps again and again: " + strings.Join(steps, "; ")
}

// details describes each step.
func (c cycle) details(h eventHistory) []string {
	var lines []string
	for i, r := range c {
		lines = append(lines, fmt.Sprintf("step %d of the cycle, %s: %s%s", i+1, c.name(r.writer), r.effect(), h.reason(r)))
	}
	return lines
}
