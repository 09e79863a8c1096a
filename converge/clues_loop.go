// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"trueup.dev/converge/internal/finding"
)

// deletionThen returns a clue: after the users have deleted an object, an entry matches.
func deletionThen(match func(entry) bool) clue {
	return func(f *explained) []int {
		return f.pair(func(_ int, e entry) bool { return isDeletionByUser(e) }, func(_, e entry) bool { return match(e) })
	}
}

var (
	isReconciledAfterDeletion = deletionThen(func(e entry) bool { return e.turn == beginning })
	writesAfterDeletion       = deletionThen(func(e entry) bool { return e.isWrite() && e.effect })
)

// isStuck: the object of the violation still exists although the users have deleted it.
func isStuck(f *explained) []int {
	if f.violation.Cause == finding.CauseNotDeleted {
		return f.violationIf(true)
	}
	return f.some(func(_ int, e entry) bool { return isDeletionByUser(e) && f.isAbout(e) })
}

// recentEnds is how many of the last reconciles show a loop.
const recentEnds = 3

// loops returns a clue: the last reconciles ended in a way that matches.
func loops(match func(entry) bool) clue {
	return func(f *explained) []int {
		var ends []int
		for i, e := range slices.Backward(f.entries) {
			if e.turn != ending || e.result == "" {
				continue
			}
			if !match(e) {
				return nil
			}
			if ends = append(ends, i); len(ends) == recentEnds {
				return ends
			}
		}
		return nil
	}
}

var (
	// asksForMore: the last reconciles ended without an error, and requested another one.
	asksForMore = loops(func(e entry) bool { return !e.failed && e.retried })
	// allFail: the last reconciles failed.
	allFail = loops(func(e entry) bool { return e.failed })
)

// createsOverTime: the process still creates objects whenever time passes, and its requests poll.
func createsOverTime(f *explained) []int {
	if loops(func(e entry) bool { return !e.failed && e.after >= time.Second })(f) == nil {
		return nil
	}
	created := f.where(func(_ int, e entry) bool { return e.isCreation() && e.act != "apply" })
	if len(created) < 2 || f.entries[created[0]].at-f.entries[created[1]].at < time.Second {
		return nil
	}
	return created[:2]
}

// writesEachTime returns a clue: the last writes of the process match, and there are several.
func writesEachTime(match func(entry) bool) clue {
	return func(f *explained) []int {
		var found []int
		for i, e := range slices.Backward(f.entries) {
			if !e.isWrite() || e.act != "" && !e.effect && !e.failed {
				continue
			}
			if !match(e) {
				return nil
			}
			if found = append(found, i); len(found) == recentEnds {
				return found
			}
		}
		return nil
	}
}

var (
	createsEachTime  = writesEachTime(func(e entry) bool { return e.isCreation() && e.act != "apply" })
	replacesEachTime = all(
		writesEachTime(func(e entry) bool { return e.isCreation() || e.isDeletion() }),
		func(f *explained) []int { return f.some(func(_ int, e entry) bool { return e.isDeletion() }) },
	)
	changesEachTime = writesEachTime(func(e entry) bool { return e.effect && !e.isCreation() && !e.isDeletion() })
)

// failsWith returns a clue: the last writes failed for a reason, and so did their reconciles.
func failsWith(reason metav1.StatusReason) clue {
	return all(writesEachTime(func(e entry) bool { return e.failed && e.reason == reason }), allFail)
}

// isInUse: the name of an object to be created was that of an object that the process had created itself.
func isInUse(f *explained) []int {
	return f.pair(func(_ int, e entry) bool { return e.isCreation() }, func(made, later entry) bool {
		return later.isSame(made) && later.reason == metav1.StatusReasonAlreadyExists
	})
}

// isCollectedEachTime: the garbage collector deletes what the process has just created.
func isCollectedEachTime(f *explained) []int {
	var found []int
	for i, e := range slices.Backward(f.entries) {
		switch {
		case e.who == "gc" || len(found)%2 == 1 && e.isCreation():
			found = append(found, i)
		case e.isWrite() && e.effect && len(found) > 0:
			return nil
		}
		if len(found) == 4 {
			return found
		}
	}
	return nil
}

// readsSeveral: a list had more than one item.
func readsSeveral(f *explained) []int {
	return f.some(func(_ int, e entry) bool { return strings.HasSuffix(e.act, "list") && e.items > 1 })
}

// dereferencesNothing: a panic of the kinds that an empty field causes.
func dereferencesNothing(f *explained) []int {
	return f.violationIf(slices.ContainsFunc(
		[]string{"nil pointer", "index out of range", "nil map", "divide by zero", "slice bounds"},
		func(kind string) bool { return strings.Contains(f.violation.Message, kind) },
	))
}

// modifies: the write of the violation changes an object. adds: it creates one.
func modifies(f *explained) []int {
	return f.violationIf(strings.HasPrefix(f.violation.About, "modified "))
}

func adds(f *explained) []int { return f.violationIf(strings.HasPrefix(f.violation.About, "added ")) }
