// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"trueup.dev/converge/internal/finding"
	"trueup.dev/converge/internal/phrase"
)

// deletionThen returns a clue: after the users have deleted an object, an entry matches.
func deletionThen(match func(Entry) bool) clue {
	return func(f *Failure) []int {
		return f.pair(func(_ int, e Entry) bool { return isDeletionByUser(e) }, func(_, e Entry) bool { return match(e) })
	}
}

var (
	isReconciledAfterDeletion = deletionThen(func(e Entry) bool { return e.Turn == Beginning })
	writesAfterDeletion       = deletionThen(func(e Entry) bool { return e.isWrite() && e.Effect })
)

// isStuck: the object of the violation still exists although the users have deleted it.
func isStuck(f *Failure) []int {
	if f.Violation.Cause == finding.CauseNotDeleted {
		return f.violationIf(true)
	}
	return f.some(func(_ int, e Entry) bool { return isDeletionByUser(e) && f.isAbout(e) })
}

// recentEnds is how many of the last reconciles show a loop.
const recentEnds = 3

// loops returns a clue: the last reconciles ended in a way that matches.
func loops(match func(Entry) bool) clue {
	return func(f *Failure) []int {
		var ends []int
		for i, e := range slices.Backward(f.Entries) {
			if e.Turn != Ending || e.Result == "" {
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
	asksForMore = loops(func(e Entry) bool { return !e.Failed && e.Retried })
	// allFail: the last reconciles failed.
	allFail = loops(func(e Entry) bool { return e.Failed })
)

// lastChange returns the index of the last change by users or actors, or -1.
func (f *Failure) lastChange() int {
	for i, e := range slices.Backward(f.Entries) {
		if e.To == TheServer && e.Act == "" && !e.Failed && e.Who != "gc" {
			return i
		}
	}
	return -1
}

// isUnnoticed: no reconcile follows the last change by users or actors.
func isUnnoticed(f *Failure) []int {
	last := f.lastChange()
	if last < 0 || f.after(last, func(e Entry) bool { return e.Turn == Beginning }) {
		return nil
	}
	return []int{last}
}

// isMisdirected: the last change by users or actors, which is not a deletion, leads only to reconciles that find
// nothing.
func isMisdirected(f *Failure) []int {
	last := f.lastChange()
	if last < 0 || strings.Contains(f.Entries[last].What, "delete") {
		return nil
	}
	var found []int
	for i, e := range f.Entries[last+1:] {
		switch {
		case e.Act == "":
		case !e.isRead() || e.Reason != metav1.StatusReasonNotFound:
			return nil
		default:
			found = append(found, last+1+i)
		}
	}
	if found == nil {
		return nil
	}
	return append(found, last)
}

// isAsleep: while users let time pass, no reconcile begins after the first minute, and none later.
func isAsleep(f *Failure) []int {
	return f.some(func(i int, e Entry) bool {
		return e.Who == phrase.User && strings.HasPrefix(e.What, "wait ") &&
			f.Entries[len(f.Entries)-1].At > e.At+time.Minute &&
			!f.after(i, func(later Entry) bool { return later.Turn == Beginning && later.At > e.At+time.Minute })
	})
}

// createsInEach: each of the last reconciles has created an object.
func createsInEach(f *Failure) []int {
	ends := loops(func(Entry) bool { return true })(f)
	var found []int
	for _, end := range ends {
		made := f.some(func(_ int, e Entry) bool {
			return e.Who == f.Entries[end].Who && e.isCreation() && e.Act != "apply"
		})
		if made == nil {
			return nil
		}
		found = append(found, made...)
	}
	return found
}

// createsOverTime: the process still creates objects whenever time passes, and its requests poll.
func createsOverTime(f *Failure) []int {
	if loops(func(e Entry) bool { return !e.Failed && e.After >= time.Second })(f) == nil {
		return nil
	}
	created := f.where(func(_ int, e Entry) bool { return e.isCreation() && e.Act != "apply" })
	if len(created) < 2 || f.Entries[created[0]].At-f.Entries[created[1]].At < time.Second {
		return nil
	}
	return created[:2]
}

// writesEachTime returns a clue: the last writes of the process match, and there are several.
func writesEachTime(match func(Entry) bool) clue {
	return func(f *Failure) []int {
		var found []int
		for i, e := range slices.Backward(f.Entries) {
			if !e.isWrite() || e.Act != "" && !e.Effect && !e.Failed {
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
	createsEachTime  = writesEachTime(func(e Entry) bool { return e.isCreation() && e.Act != "apply" })
	replacesEachTime = all(
		writesEachTime(func(e Entry) bool { return e.isCreation() || e.isDeletion() }),
		func(f *Failure) []int { return f.some(func(_ int, e Entry) bool { return e.isDeletion() }) },
	)
	changesEachTime = writesEachTime(func(e Entry) bool { return e.Effect && !e.isCreation() && !e.isDeletion() })
)

// failsWith returns a clue: the last writes failed for a reason, and so did their reconciles.
func failsWith(reason metav1.StatusReason) clue {
	return all(writesEachTime(func(e Entry) bool { return e.Failed && e.Reason == reason }), allFail)
}

// isInUse: the name of an object to be created was the name of an object that the process had created itself.
func isInUse(f *Failure) []int {
	return f.pair(func(_ int, e Entry) bool { return e.isCreation() }, func(made, later Entry) bool {
		return later.isSame(made) && later.Reason == metav1.StatusReasonAlreadyExists
	})
}

// isCollectedEachTime: the garbage collector deletes what the process has just created.
func isCollectedEachTime(f *Failure) []int {
	var found []int
	for i, e := range slices.Backward(f.Entries) {
		switch {
		case e.Who == "gc" || len(found)%2 == 1 && e.isCreation():
			found = append(found, i)
		case e.isWrite() && e.Effect && len(found) > 0:
			return nil
		}
		if len(found) == 4 {
			return found
		}
	}
	return nil
}

// readsSeveral: a list had more than one item.
func readsSeveral(f *Failure) []int {
	return f.some(func(_ int, e Entry) bool { return strings.HasSuffix(e.Act, "list") && e.Items > 1 })
}

// dereferencesNothing: a panic of the kinds that an empty field causes.
func dereferencesNothing(f *Failure) []int {
	return f.violationIf(slices.ContainsFunc(
		[]string{"nil pointer", "index out of range", "nil map", "divide by zero", "slice bounds"},
		func(kind string) bool { return strings.Contains(f.Violation.Message, kind) },
	))
}

// modifies: the write of the violation changes an object. adds: it creates one.
func modifies(f *Failure) []int {
	return f.violationIf(strings.HasPrefix(f.Violation.About, "modified "))
}

func adds(f *Failure) []int { return f.violationIf(strings.HasPrefix(f.Violation.About, "added ")) }
