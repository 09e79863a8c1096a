// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/phrase"
)

// clue returns the indexes of the entries of a timeline that show what a hint states, or none if they do not show it. A
// hint without a clue states no more than the violation itself does.
type clue func(*explained) []int

// all returns a clue for which all clues are required.
func all(clues ...clue) clue {
	return func(f *explained) []int {
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
	return func(f *explained) []int { return f.violationIf(c(f) == nil) }
}

// some returns the index of the last entry that matches.
func (f *explained) some(match func(i int, e entry) bool) []int {
	for i, e := range slices.Backward(f.entries) {
		if match(i, e) {
			return []int{i}
		}
	}
	return nil
}

// pair returns the indexes of the last entry that matches, and of the first one after it that matches too.
func (f *explained) pair(first func(i int, e entry) bool, second func(first, e entry) bool) []int {
	for i, e := range slices.Backward(f.entries) {
		if !first(i, e) {
			continue
		}
		if at := slices.IndexFunc(f.entries[i+1:], func(later entry) bool { return second(e, later) }); at >= 0 {
			return []int{i, i + 1 + at}
		}
	}
	return nil
}

// after reports whether an entry after another one matches.
func (f *explained) after(i int, match func(entry) bool) bool {
	return slices.ContainsFunc(f.entries[i+1:], match)
}

// writes reports whether an entry is a write of the process to the object of the violation that took effect.
func (f *explained) writes(e entry) bool { return e.isWrite() && e.effect && f.isAbout(e) }

// endOf returns the index of the end of the reconcile of an entry, or -1 if the process ends first.
func (f *explained) endOf(i int) int {
	who := f.entries[i].who
	for n, e := range f.entries[i+1:] {
		if e.turn == dying || e.turn == starting {
			return -1
		}
		if e.turn == ending && e.who == who {
			return i + 1 + n
		}
	}
	return -1
}

// isWrite reports whether an entry is a request that can change something.
func (e entry) isWrite() bool { return e.act != "" && !e.isRead() }

// isSame reports whether an entry makes the same request as another one.
func (e entry) isSame(other entry) bool { return e.act == other.act && e.object == other.object }

// gotError reports whether an entry is a request that received an injected error, or a conflict.
func (e entry) gotError() bool {
	return e.act != "" && e.failed && (inject.ErrorFaults.Has(e.fault) || e.reason == metav1.StatusReasonConflict)
}

// isLost reports whether an entry is a write that took effect although the process received no success. Late writes are
// marked as stale.
func (e entry) isLost() bool {
	return e.effect && (inject.LostResponseFaults.Has(e.fault) || e.mark == staleMark)
}

func (e entry) isStaleRead() bool { return e.mark == staleMark && e.isRead() }

// isCreation and isDeletion report whether an entry is a request that created or deleted something.
func (e entry) isCreation() bool {
	return e.effect && (e.act == "create" || e.act == "put" || e.act == "apply")
}

func (e entry) isDeletion() bool { return e.effect && strings.HasPrefix(e.act, "delete") }

// endsAfter returns a clue: a request received an error, and its reconcile ended in a way that matches.
func endsAfter(match func(f *explained, i int, request, end entry) bool) clue {
	return func(f *explained) []int {
		for i, e := range slices.Backward(f.entries) {
			if !e.gotError() {
				continue
			}
			if end := f.endOf(i); end >= 0 && match(f, i, e, f.entries[end]) {
				return []int{i, end}
			}
		}
		return nil
	}
}

// swallowsError: a reconcile received an error, and ended without one and without a requeue. A request that is repeated
// with success does not count.
var swallowsError = endsAfter(func(f *explained, i int, request, end entry) bool {
	return !end.failed && !end.retried && !f.after(i, func(later entry) bool {
		return later.isSame(request) && !later.failed && (request.isWrite() || later.who == request.who)
	})
})

// failedWriteIsNotRepeated: a write failed, its reconcile returned the error, and no later reconcile makes the same
// write.
var failedWriteIsNotRepeated = endsAfter(func(f *explained, i int, request, end entry) bool {
	return request.isWrite() && !request.effect && end.failed && !f.after(i, request.isSame)
})

// failedWriteTookEffect: a write to the object of the violation took effect although it failed, and its reconcile
// returned the error.
var failedWriteTookEffect = endsAfter(func(f *explained, _ int, request, end entry) bool {
	return request.fault == inject.TimeoutApplied && request.effect && end.failed && f.isAbout(request)
})

// failsOutsideOfReconcile: a handler or a goroutine received an error.
func failsOutsideOfReconcile(f *explained) []int {
	return f.some(func(_ int, e entry) bool { return e.who == "process" && e.gotError() })
}

// recordsError: a reconcile received an error, and then wrote the object of the violation, which no other reconcile has
// written since.
func recordsError(f *explained) []int {
	return f.pair(func(i int, e entry) bool {
		return e.gotError() && e.reason != metav1.StatusReasonConflict &&
			!f.after(i, func(later entry) bool { return later.who != e.who && f.writes(later) })
	}, func(request, later entry) bool { return later.who == request.who && f.writes(later) })
}

// isNotWrittenAfterCrash: the process ended, and the next one did not write the object of the violation.
func isNotWrittenAfterCrash(f *explained) []int {
	return f.some(func(i int, e entry) bool { return e.turn == dying && f.about() != "" && !f.after(i, f.writes) })
}

// isNotRecreated: another client deleted the object of the violation, and the process did not write it afterwards.
func isNotRecreated(f *explained) []int {
	return f.some(func(i int, e entry) bool {
		return e.who == phrase.AnotherClient && strings.HasPrefix(e.what, "delete ") && f.isAbout(e) && !f.after(i, f.writes)
	})
}

// isNotReverted: another client changed the object of the violation, and the process did not write it afterwards.
func isNotReverted(f *explained) []int {
	return f.some(func(i int, e entry) bool { return e.fault == inject.Drift && f.isAbout(e) && !f.after(i, f.writes) })
}

// isAcceptedAsItIs: the object of the violation existed when it was to be created, and it was not written afterwards.
func isAcceptedAsItIs(f *explained) []int {
	return f.some(func(i int, e entry) bool {
		end := f.endOf(i)
		return e.act == "create" && e.reason == metav1.StatusReasonAlreadyExists && f.isAbout(e) &&
			end >= 0 && !f.entries[end].failed && !f.after(i, f.writes)
	})
}

// writesAfterStaleRead: a reconcile wrote after a read from a stale cache.
func writesAfterStaleRead(f *explained) []int {
	return f.pair(func(_ int, e entry) bool { return e.isStaleRead() }, func(read, later entry) bool {
		return later.who == read.who && later.isWrite() && later.effect
	})
}

// deletesAfterStaleRead: a reconcile deleted the object of the violation after a read from a stale cache.
func deletesAfterStaleRead(f *explained) []int {
	return f.pair(func(_ int, e entry) bool { return e.isStaleRead() }, func(read, later entry) bool {
		return later.who == read.who && later.isDeletion() && f.isAbout(later)
	})
}

// createdTwice returns a clue: the process created the object of the violation twice before it was deleted, and match
// returns what else shows why.
func createdTwice(match func(f *explained, first, second int) []int) clue {
	return func(f *explained) []int {
		first := -1
		for i, e := range f.entries {
			switch {
			case !f.isAbout(e):
			case strings.Contains(e.act+e.what, "delete"):
				first = -1
			case e.act == "apply" || !e.isCreation():
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
func firstIsNotInCache(f *explained, first, second int) []int {
	made, again := f.entries[first], f.entries[second]
	for i := second - 1; i > first; i-- {
		if e := f.entries[i]; e.who == again.who && e.isStaleRead() && e.position < made.version && e.kind == made.kind {
			return []int{i}
		}
	}
	return nil
}

// firstIsLost matches a creation whose response was lost.
func firstIsLost(f *explained, first, _ int) []int {
	if f.entries[first].isLost() {
		return []int{first}
	}
	return nil
}

// isLostAndDeleted: the process deleted an object whose creation it could not know to have succeeded.
func isLostAndDeleted(f *explained) []int {
	return f.pair(func(_ int, e entry) bool { return e.isCreation() && e.isLost() && f.isAbout(e) },
		func(_, later entry) bool { return later.isDeletion() && f.isAbout(later) })
}

// repeatsLostWrite: the process made a write to the object of the violation again, although an earlier one with a lost
// response had taken effect.
func repeatsLostWrite(f *explained) []int {
	return f.pair(func(_ int, e entry) bool { return f.writes(e) && e.isLost() },
		func(first, later entry) bool { return f.writes(later) && later.act == first.act })
}

// createsAfter returns a clue: the process created the object of the violation after an entry that matches.
func createsAfter(match func(entry) bool) clue {
	return func(f *explained) []int {
		return f.pair(func(_ int, e entry) bool { return match(e) },
			func(_, later entry) bool { return later.isCreation() && f.isAbout(later) })
	}
}

func isRepetition(e entry) bool { return inject.RepeatFaults.Has(e.fault) }

// isDeletionByUser matches a step that deletes an object.
func isDeletionByUser(e entry) bool {
	return e.who == phrase.User && strings.HasPrefix(e.what, "delete ")
}

// isForgotten: the response to the creation of the object of the violation was lost.
func isForgotten(f *explained) []int {
	return f.some(func(_ int, e entry) bool { return e.isCreation() && e.isLost() && f.isAbout(e) })
}

// isUnowned: the process created the object of the violation without an owner.
func isUnowned(f *explained) []int {
	return f.some(func(_ int, e entry) bool {
		return e.isCreation() && e.unowned && f.isAbout(e) && e.kind.Kind != ""
	})
}

// isOwned: the process created the object of the violation with an owner.
func isOwned(f *explained) []int {
	return f.some(func(_ int, e entry) bool {
		return e.isCreation() && !e.unowned && f.isAbout(e) && e.kind.Kind != ""
	})
}

// isOutside: the violation is about something outside of the cluster.
func isOutside(f *explained) []int { return f.violationIf(strings.HasPrefix(f.about(), "cloud ")) }

// violationIf returns the index of the violation if something is true of it.
func (f *explained) violationIf(match bool) []int {
	return f.some(func(_ int, e entry) bool { return match && e.mark == harmMark })
}
