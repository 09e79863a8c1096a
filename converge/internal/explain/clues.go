// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/phrase"
)

// clue returns the indexes of the entries of a timeline that show what a hint states, or none if they do not show it. A
// hint without a clue states no more than the violation itself does.
type clue func(*Failure) []int

// all returns a clue for which all clues are required.
func all(clues ...clue) clue {
	return func(f *Failure) []int {
		var shown []int
		for _, c := range clues {
			found := c(f)
			if found == nil {
				return nil
			}
			shown = append(shown, found...)
		}
		return shown
	}
}

// not returns a clue that is shown by the violation if another one is not.
func not(c clue) clue {
	return func(f *Failure) []int { return f.violationIf(c(f) == nil) }
}

// says returns a clue that the message of the violation has, which needs no entry.
func says(part string) clue {
	return func(f *Failure) []int {
		if strings.Contains(f.Violation.Message, part) {
			return []int{}
		}
		return nil
	}
}

// some returns the index of the last entry that matches.
func (f *Failure) some(match func(i int, e Entry) bool) []int {
	for i, e := range slices.Backward(f.Entries) {
		if match(i, e) {
			return []int{i}
		}
	}
	return nil
}

// pair returns the indexes of the last entry that matches, and of the first one after it that matches too.
func (f *Failure) pair(first func(i int, e Entry) bool, second func(first, e Entry) bool) []int {
	for i, e := range slices.Backward(f.Entries) {
		if !first(i, e) {
			continue
		}
		if at := slices.IndexFunc(f.Entries[i+1:], func(later Entry) bool { return second(e, later) }); at >= 0 {
			return []int{i, i + 1 + at}
		}
	}
	return nil
}

// after reports whether an entry after another one matches.
func (f *Failure) after(i int, match func(Entry) bool) bool {
	return slices.ContainsFunc(f.Entries[i+1:], match)
}

// writes reports whether an entry is a write of the process to the object of the violation that took effect.
func (f *Failure) writes(e Entry) bool { return e.isWrite() && e.Effect && f.isAbout(e) }

// endOf returns the index of the end of the reconcile of an entry, or -1 if the process ends first.
func (f *Failure) endOf(i int) int {
	who := f.Entries[i].Who
	for n, e := range f.Entries[i+1:] {
		if e.Turn == Dying || e.Turn == Starting {
			return -1
		}
		if e.Turn == Ending && e.Who == who {
			return i + 1 + n
		}
	}
	return -1
}

// isWrite reports whether an entry is a request that can change something.
func (e Entry) isWrite() bool { return e.Act != "" && !e.isRead() }

// isSame reports whether an entry makes the same request as another one.
func (e Entry) isSame(other Entry) bool { return e.Act == other.Act && e.Object == other.Object }

// gotError reports whether an entry is a request that received an injected error, or a conflict.
func (e Entry) gotError() bool {
	return e.Act != "" && e.Failed && (inject.ErrorFaults.Has(e.Fault) || e.Reason == metav1.StatusReasonConflict)
}

// isLost reports whether an entry is a write that took effect although the process received no success. Late writes are
// marked as stale.
func (e Entry) isLost() bool {
	return e.Effect && (inject.LostResponseFaults.Has(e.Fault) || e.Mark == StaleMark)
}

func (e Entry) isStaleRead() bool { return e.Mark == StaleMark && e.isRead() }

// isCreation and isDeletion report whether an entry is a request that created or deleted something.
func (e Entry) isCreation() bool {
	return e.Effect && (e.Act == "create" || e.Act == "put" || e.Act == "apply")
}

func (e Entry) isDeletion() bool { return e.Effect && strings.HasPrefix(e.Act, "delete") }

// endsAfter returns a clue: a request received an error, and its reconcile ended in a way that matches.
func endsAfter(match func(f *Failure, i int, request, end Entry) bool) clue {
	return func(f *Failure) []int {
		for i, e := range slices.Backward(f.Entries) {
			if !e.gotError() {
				continue
			}
			if end := f.endOf(i); end >= 0 && match(f, i, e, f.Entries[end]) {
				return []int{i, end}
			}
		}
		return nil
	}
}

// swallowsError: a reconcile received an error, and ended without one and without a requeue. A request that is repeated
// with success does not count.
var swallowsError = endsAfter(func(f *Failure, i int, request, end Entry) bool {
	return !end.Failed && !end.Retried && !f.after(i, func(later Entry) bool {
		return later.isSame(request) && !later.Failed && (request.isWrite() || later.Who == request.Who)
	})
})

// failedWriteIsNotRepeated: a write failed, its reconcile returned the error, and no later reconcile makes the same
// write.
var failedWriteIsNotRepeated = endsAfter(func(f *Failure, i int, request, end Entry) bool {
	return request.isWrite() && !request.Effect && end.Failed && !f.after(i, request.isSame)
})

// failedWriteTookEffect: a write to the object of the violation took effect although it failed, and its reconcile
// returned the error.
var failedWriteTookEffect = endsAfter(func(f *Failure, _ int, request, end Entry) bool {
	return request.Fault == inject.TimeoutApplied && request.Effect && end.Failed && f.isAbout(request)
})

// failsOutsideOfReconcile: a handler or a goroutine received an error.
func failsOutsideOfReconcile(f *Failure) []int {
	return f.some(func(_ int, e Entry) bool { return e.Who == "process" && e.gotError() })
}

// recordsError: a reconcile received an error, and then wrote the object of the violation, which no other reconcile has
// written since.
func recordsError(f *Failure) []int {
	return f.pair(func(i int, e Entry) bool {
		return e.gotError() && e.Reason != metav1.StatusReasonConflict &&
			!f.after(i, func(later Entry) bool { return later.Who != e.Who && f.writes(later) })
	}, func(request, later Entry) bool { return later.Who == request.Who && f.writes(later) })
}

// isNotWrittenAfterCrash: the process ended, and the next one did not write the object of the violation.
func isNotWrittenAfterCrash(f *Failure) []int {
	return f.some(func(i int, e Entry) bool { return e.Turn == Dying && f.about() != "" && !f.after(i, f.writes) })
}

// isWrittenAfterCrash: the process ended, and the next one wrote the object of the violation.
func isWrittenAfterCrash(f *Failure) []int {
	return f.pair(
		func(_ int, e Entry) bool { return e.Turn == Dying }, func(_, later Entry) bool { return f.writes(later) },
	)
}

// writesAfterStaleStart: a process started with a cache in the past, and wrote the object of the violation.
func writesAfterStaleStart(f *Failure) []int {
	return f.pair(
		func(_ int, e Entry) bool { return e.Fault == inject.StaleStart },
		func(_, later Entry) bool { return f.writes(later) },
	)
}

// writesAfterError: a reconcile received an error, and then wrote the object of the violation.
func writesAfterError(f *Failure) []int {
	return f.pair(
		func(_ int, e Entry) bool { return e.gotError() },
		func(request, later Entry) bool { return later.Who == request.Who && f.writes(later) },
	)
}

// deletesForeign: the process deleted an object that another client of the users had created, or objects after users
// had orphaned them.
func deletesForeign(f *Failure) []int {
	return f.pair(func(_ int, e Entry) bool {
		return e.Who == phrase.User && (strings.Contains(e.What, " creates ") || strings.HasPrefix(e.What, "orphan "))
	}, func(step, later Entry) bool {
		return later.isDeletion() && later.Object != "" &&
			(strings.HasPrefix(step.What, "orphan ") || strings.HasSuffix(step.What, " creates "+later.Object))
	})
}

// isNotRecreated: another client deleted the object of the violation, and the process did not write it afterwards.
func isNotRecreated(f *Failure) []int {
	return f.some(func(i int, e Entry) bool {
		return e.Who == phrase.AnotherClient && strings.HasPrefix(e.What, "delete ") && f.isAbout(e) && !f.after(i, f.writes)
	})
}

// isNotReverted: another client changed the object of the violation, and the process did not write it afterwards.
func isNotReverted(f *Failure) []int {
	return f.some(func(i int, e Entry) bool { return e.Fault == inject.Drift && f.isAbout(e) && !f.after(i, f.writes) })
}

// isAcceptedAsItIs: the object of the violation existed when it was to be created, and it was not written afterwards.
func isAcceptedAsItIs(f *Failure) []int {
	return f.some(func(i int, e Entry) bool {
		end := f.endOf(i)
		return e.Act == "create" && e.Reason == metav1.StatusReasonAlreadyExists && f.isAbout(e) &&
			end >= 0 && !f.Entries[end].Failed && !f.after(i, f.writes)
	})
}

// writesAfterStaleRead: a reconcile wrote after a read from a stale cache.
func writesAfterStaleRead(f *Failure) []int {
	return f.pair(func(_ int, e Entry) bool { return e.isStaleRead() }, func(read, later Entry) bool {
		return later.Who == read.Who && later.isWrite() && later.Effect
	})
}

// deletesAfterStaleRead: a reconcile deleted the object of the violation after a read from a stale cache.
func deletesAfterStaleRead(f *Failure) []int {
	return f.pair(func(_ int, e Entry) bool { return e.isStaleRead() }, func(read, later Entry) bool {
		return later.Who == read.Who && later.isDeletion() && f.isAbout(later)
	})
}

// createdTwice returns a clue: the process created the object of the violation twice before it was deleted, and match
// returns what else shows why.
func createdTwice(match func(f *Failure, first, second int) []int) clue {
	return func(f *Failure) []int {
		first := -1
		for i, e := range f.Entries {
			switch {
			case !f.isAbout(e):
			case strings.Contains(e.Act+e.What, "delete"):
				first = -1
			case e.Act == "apply" || !e.isCreation():
			case first >= 0:
				if found := match(f, first, i); found != nil {
					return append(found, first, i)
				}
				first = i
			default:
				first = i
			}
		}
		return nil
	}
}

// firstIsNotInCache matches a creation that the reconcile of a second one did not see, because its cache was stale.
func firstIsNotInCache(f *Failure, first, second int) []int {
	made, again := f.Entries[first], f.Entries[second]
	for i := second - 1; i > first; i-- {
		if e := f.Entries[i]; e.Who == again.Who && e.isStaleRead() && e.Position < made.Version && e.Kind == made.Kind {
			return []int{i}
		}
	}
	return nil
}

// firstIsLost matches a creation whose response was lost.
func firstIsLost(f *Failure, first, _ int) []int {
	if f.Entries[first].isLost() {
		return []int{first}
	}
	return nil
}

// firstIsNotRecorded matches a creation whose reconcile failed or ended with its process.
func firstIsNotRecorded(f *Failure, first, _ int) []int {
	switch end := f.endOf(first); {
	case end < 0:
		return []int{first}
	case f.Entries[end].Failed:
		return []int{end}
	}
	return nil
}

// isLostAndDeleted: the process deleted an object whose creation it could not know to have succeeded.
func isLostAndDeleted(f *Failure) []int {
	return f.pair(func(_ int, e Entry) bool { return e.isCreation() && e.isLost() && f.isAbout(e) },
		func(_, later Entry) bool { return later.isDeletion() && f.isAbout(later) })
}

// repeatsLostWrite: the process made a write to the object of the violation again, although an earlier one with a lost
// response had taken effect.
func repeatsLostWrite(f *Failure) []int {
	return f.pair(func(_ int, e Entry) bool { return f.writes(e) && e.isLost() },
		func(first, later Entry) bool { return f.writes(later) && later.Act == first.Act })
}

// createsAfter returns a clue: the process created the object of the violation after an entry that matches.
func createsAfter(match func(Entry) bool) clue {
	return func(f *Failure) []int {
		return f.pair(func(_ int, e Entry) bool { return match(e) },
			func(_, later Entry) bool { return later.isCreation() && f.isAbout(later) })
	}
}

func isRepetition(e Entry) bool { return inject.RepeatFaults.Has(e.Fault) }

// isDeletionByUser matches a step that deletes an object.
func isDeletionByUser(e Entry) bool {
	return e.Who == phrase.User && strings.HasPrefix(e.What, "delete ")
}

// isForgotten: the response to the creation of the object of the violation was lost.
func isForgotten(f *Failure) []int {
	return f.some(func(_ int, e Entry) bool { return e.isCreation() && e.isLost() && f.isAbout(e) })
}

// isUnowned: the process created the object of the violation without an owner.
func isUnowned(f *Failure) []int {
	return f.some(func(_ int, e Entry) bool {
		return e.isCreation() && e.Unowned && f.isAbout(e) && e.Kind.Kind != ""
	})
}

// isOwned: the process created the object of the violation with an owner.
func isOwned(f *Failure) []int {
	return f.some(func(_ int, e Entry) bool {
		return e.isCreation() && !e.Unowned && f.isAbout(e) && e.Kind.Kind != ""
	})
}

// isOutside: the violation is about something outside of the cluster.
func isOutside(f *Failure) []int { return f.violationIf(strings.HasPrefix(f.about(), "cloud ")) }

// violationIf returns the index of the violation if something is true of it.
func (f *Failure) violationIf(match bool) []int {
	return f.some(func(_ int, e Entry) bool { return match && e.Mark == HarmMark })
}
