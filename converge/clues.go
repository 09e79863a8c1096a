// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// clue reports whether the timeline of a failure shows what a hint states. A hint without a clue states no more than
// the violation itself does.
type clue func(*Failure) bool

// all returns a clue for which all clues are required.
func all(clues ...clue) clue {
	return func(f *Failure) bool {
		return !slices.ContainsFunc(clues, func(c clue) bool { return !c(f) })
	}
}

func not(c clue) clue { return func(f *Failure) bool { return !c(f) } }

// some reports whether an entry matches.
func (f *Failure) some(match func(i int, e entry) bool) bool {
	for i, e := range f.entries {
		if match(i, e) {
			return true
		}
	}
	return false
}

// after reports whether an entry after another one matches.
func (f *Failure) after(i int, match func(entry) bool) bool {
	return slices.ContainsFunc(f.entries[i+1:], match)
}

// endOf returns the end of the reconcile of an entry. There is none if the process ends first.
func (f *Failure) endOf(i int) (entry, bool) {
	who := f.entries[i].who
	for _, e := range f.entries[i+1:] {
		if e.turn == dying || e.turn == starting {
			return entry{}, false
		}
		if e.turn == ending && e.who == who {
			return e, true
		}
	}
	return entry{}, false
}

// isWrite reports whether an entry is a request that can change something.
func (e entry) isWrite() bool { return e.act != "" && !e.isRead() }

// isSame reports whether an entry makes the same request as another one.
func (e entry) isSame(other entry) bool { return e.act == other.act && e.object == other.object }

// gotError reports whether an entry is a request that received an injected error, or a conflict.
func (e entry) gotError() bool {
	return e.act != "" && e.failed && (errorFaults.has(e.fault) || e.reason == metav1.StatusReasonConflict)
}

// isLost reports whether an entry is a write that took effect although the process received no success.
func (e entry) isLost() bool {
	return e.effect && e.fault != "" && lostResponseFaults.has(e.fault) || e.fault == FaultHandOver
}

// swallowsError reports that a reconcile received an error, and ended without one and without a requeue. A request that
// is repeated with success does not count.
func swallowsError(f *Failure) bool {
	return f.some(func(i int, e entry) bool {
		if !e.gotError() {
			return false
		}
		end, ended := f.endOf(i)
		if !ended || end.failed || end.retried {
			return false
		}
		return !f.after(i, func(later entry) bool {
			return later.isSame(e) && !later.failed && (e.isWrite() || later.who == e.who)
		})
	})
}

// failsOutsideOfReconcile reports that a handler or a goroutine received an error.
func failsOutsideOfReconcile(f *Failure) bool {
	return f.some(func(_ int, e entry) bool { return e.who == "process" && e.gotError() })
}

// recordsError reports that a reconcile received an error, and then wrote the object of the violation, which no other
// reconcile has written since.
func recordsError(f *Failure) bool {
	return f.some(func(i int, e entry) bool {
		if !e.gotError() || e.reason == metav1.StatusReasonConflict {
			return false
		}
		wrote := func(later entry) bool { return later.isWrite() && later.effect && f.isAbout(later) }
		return f.after(i, func(later entry) bool { return later.who == e.who && wrote(later) }) &&
			!f.after(i, func(later entry) bool { return later.who != e.who && wrote(later) })
	})
}

// failedWriteIsNotRepeated reports that a write failed, that its reconcile returned the error, and that no later
// reconcile makes the same write.
func failedWriteIsNotRepeated(f *Failure) bool {
	return f.some(func(i int, e entry) bool {
		if !e.gotError() || !e.isWrite() || e.effect {
			return false
		}
		end, ended := f.endOf(i)
		return ended && end.failed && !f.after(i, func(later entry) bool { return later.isSame(e) })
	})
}

// failedWriteTookEffect reports that a write took effect although it failed, and that its reconcile returned the error.
func failedWriteTookEffect(f *Failure) bool {
	return f.some(func(i int, e entry) bool {
		end, ended := f.endOf(i)
		return e.fault == FaultTimeoutApplied && e.effect && ended && end.failed
	})
}

// isNotWrittenAfterCrash reports that the process ended, and that the next one did not write the object of the
// violation.
func isNotWrittenAfterCrash(f *Failure) bool {
	return f.some(func(i int, e entry) bool {
		return e.turn == dying && !f.after(i, func(later entry) bool {
			return later.isWrite() && later.effect && f.isAbout(later)
		})
	})
}

// isNotRecreated reports that another client deleted the object of the violation, and that the process did not create
// it again.
func isNotRecreated(f *Failure) bool {
	return f.some(func(i int, e entry) bool {
		return e.who == byOther && strings.HasPrefix(e.what, "delete ") && f.isAbout(e) &&
			!f.after(i, func(later entry) bool { return later.isWrite() && later.effect && f.isAbout(later) })
	})
}

// isNotReverted reports that another client changed the object of the violation, and that the process did not write it
// afterwards.
func isNotReverted(f *Failure) bool {
	return f.some(func(i int, e entry) bool {
		return e.fault == FaultDrift && f.isAbout(e) &&
			!f.after(i, func(later entry) bool { return later.isWrite() && later.effect && f.isAbout(later) })
	})
}

// isAcceptedAsItIs reports that the object of the violation existed when it was to be created, and that it was not
// written afterwards.
func isAcceptedAsItIs(f *Failure) bool {
	return f.some(func(i int, e entry) bool {
		end, ended := f.endOf(i)
		return e.act == "create" && e.reason == metav1.StatusReasonAlreadyExists && f.isAbout(e) && ended && !end.failed &&
			!f.after(i, func(later entry) bool { return later.isWrite() && later.effect && f.isAbout(later) })
	})
}

// writesAfterStaleRead reports that a reconcile wrote after a read from a stale cache.
func writesAfterStaleRead(f *Failure) bool {
	return f.some(func(i int, e entry) bool {
		return e.isStaleRead() && f.after(i, func(later entry) bool {
			return later.who == e.who && later.isWrite() && later.effect
		})
	})
}

// deletesAfterStaleRead reports that a reconcile deleted the object of the violation after a read from a stale cache.
func deletesAfterStaleRead(f *Failure) bool {
	return f.some(func(i int, e entry) bool {
		return e.isStaleRead() && f.after(i, func(later entry) bool {
			return later.who == e.who && later.isDeletion() && f.isAbout(later)
		})
	})
}

func (e entry) isStaleRead() bool { return e.mark == staleMark && e.isRead() }

// isCreation and isDeletion report whether an entry is a request that created or deleted something.
func (e entry) isCreation() bool {
	return e.effect && (e.act == "create" || e.act == "put" || e.act == "apply")
}

func (e entry) isDeletion() bool { return e.effect && strings.HasPrefix(e.act, "delete") }

// createdTwice reports that the process created the object of the violation twice before anything deleted it, and that
// the two creations match.
func createdTwice(match func(f *Failure, first, second int) bool) clue {
	return func(f *Failure) bool {
		first := -1
		for i, e := range f.entries {
			switch {
			case !f.isAbout(e):
			case strings.Contains(e.act+e.what, "delete"):
				first = -1
			case !e.isCreation() || e.act == "apply":
			case first >= 0 && match(f, first, i):
				return true
			default:
				first = i
			}
		}
		return false
	}
}

// firstIsNotInCache matches a creation that the reconcile of a second one did not see, because its cache was stale.
func firstIsNotInCache(f *Failure, first, second int) bool {
	made, again := f.entries[first], f.entries[second]
	return slices.ContainsFunc(f.entries[first+1:second], func(read entry) bool {
		return read.who == again.who && read.isStaleRead() && read.position < made.version && read.kind == made.kind
	})
}

// firstIsLost matches a creation whose response was lost.
func firstIsLost(f *Failure, first, _ int) bool { return f.entries[first].isLost() }

// isLostAndDeleted reports that the process deleted an object whose creation it could not know to have succeeded.
func isLostAndDeleted(f *Failure) bool {
	return f.some(func(i int, e entry) bool {
		return e.isCreation() && e.isLost() && f.isAbout(e) && f.after(i, func(later entry) bool {
			return later.isDeletion() && f.isAbout(later)
		})
	})
}

// createsAfter returns a clue: the process created the object of the violation after an entry that matches.
func createsAfter(match func(f *Failure, e entry) bool) clue {
	return func(f *Failure) bool {
		return f.some(func(i int, e entry) bool {
			return match(f, e) && f.after(i, func(later entry) bool {
				return later.isCreation() && f.isAbout(later)
			})
		})
	}
}

func isRepetition(_ *Failure, e entry) bool { return e.fault != "" && repeatFaults.has(e.fault) }

// isDeletionByUser matches a step that deletes an object.
func isDeletionByUser(_ *Failure, e entry) bool {
	return e.who == byUser && strings.HasPrefix(e.what, "delete ")
}

// isForgotten reports that the response to the creation of the object of the violation was lost.
func isForgotten(f *Failure) bool {
	return f.some(func(_ int, e entry) bool { return e.isCreation() && e.isLost() && f.isAbout(e) })
}

// isUnowned reports that the process created the object of the violation without an owner.
func isUnowned(f *Failure) bool {
	return f.some(func(_ int, e entry) bool {
		return e.isCreation() && e.act != "put" && e.unowned && f.isAbout(e) && e.kind.Kind != ""
	})
}

// isOutside reports whether the violation is about something outside of the cluster.
func isOutside(f *Failure) bool { return strings.HasPrefix(f.about(), "cloud ") }

// deletedReconciles reports whether a reconcile after the deletion by the user matches.
func deletedReconciles(match func(entry) bool) clue {
	return func(f *Failure) bool {
		return f.some(func(i int, e entry) bool { return isDeletionByUser(f, e) && f.after(i, match) })
	}
}

var (
	isReconciledAfterDeletion = deletedReconciles(func(e entry) bool { return e.turn == beginning })
	writesAfterDeletion       = deletedReconciles(func(e entry) bool { return e.isWrite() && e.effect })
)

// isStuck reports that the object of the violation still exists although the users have deleted it.
func isStuck(f *Failure) bool {
	return f.Violation.Cause == CauseNotDeleted ||
		f.some(func(_ int, e entry) bool { return isDeletionByUser(f, e) && f.isAbout(e) })
}

// recent returns the ends of the last reconciles.
func (f *Failure) recent() []entry {
	var ends []entry
	for _, e := range slices.Backward(f.entries) {
		if e.turn == ending && e.result != "" {
			ends = append(ends, e)
		}
		if len(ends) == 4 {
			break
		}
	}
	return ends
}

// asksForMore reports that the last reconciles ended without an error, and requested another one.
func asksForMore(f *Failure) bool {
	recent := f.recent()
	return len(recent) > 0 && !slices.ContainsFunc(recent, func(e entry) bool { return e.failed || !e.retried })
}

// allFail reports that the last reconciles failed.
func allFail(f *Failure) bool {
	recent := f.recent()
	return len(recent) > 1 && !slices.ContainsFunc(recent, func(e entry) bool { return !e.failed })
}

// failsWith returns a clue: the last requests of failing reconciles failed for a reason.
func failsWith(reason metav1.StatusReason) clue {
	return func(f *Failure) bool {
		times := 0
		for _, e := range slices.Backward(f.entries) {
			if e.isWrite() && e.failed && e.reason == reason {
				times++
			} else if e.isWrite() && e.effect {
				break
			}
		}
		return times > 1 && allFail(f)
	}
}

// othersWriteToo reports that the object that the process writes at the end is also written by others.
func othersWriteToo(f *Failure) bool {
	var last entry
	others := 0
	for i, e := range slices.Backward(f.entries) {
		switch {
		case last.act == "" && e.isWrite() && e.effect:
			last = e
		case last.act != "" && e.act == "" && e.to == theServer && e.who != byUser && strings.Contains(e.what, last.object):
			others++
		}
		if i < len(f.entries)-40 || others > 1 {
			break
		}
	}
	return others > 1
}

// createsEachTime reports that each of the last reconciles created an object.
func createsEachTime(f *Failure) bool { return f.effects((entry).isCreation) > 2 }

// changesEachTime reports that each of the last reconciles wrote.
func changesEachTime(f *Failure) bool {
	return f.effects(func(e entry) bool { return e.effect && !e.isCreation() && !e.isDeletion() }) > 2
}

// effects counts the last entries in which the process wrote, if all of them match.
func (f *Failure) effects(match func(entry) bool) int {
	times := 0
	for _, e := range slices.Backward(f.entries) {
		if e.isWrite() && e.effect {
			if !match(e) {
				break
			}
			times++
		}
	}
	return times
}

// polls reports that the last reconciles were requeued after at least a second.
func polls(f *Failure) bool {
	recent := f.recent()
	return len(recent) > 1 && !slices.ContainsFunc(recent, func(e entry) bool { return e.after < pollTime/15 })
}

// readsSeveral reports that a list had more than one item.
func readsSeveral(f *Failure) bool {
	return f.some(func(_ int, e entry) bool { return strings.HasSuffix(e.act, "list") && e.items > 1 })
}

// dereferencesNothing reports a panic of the kinds that an empty field causes.
func dereferencesNothing(f *Failure) bool {
	for _, kind := range []string{"nil pointer", "index out of range", "nil map", "divide by zero", "slice bounds"} {
		if strings.Contains(f.Violation.Message, kind) {
			return true
		}
	}
	return false
}

// modifies reports that the write of the violation is a change of an object, not its creation.
func modifies(f *Failure) bool { return strings.HasPrefix(f.Violation.About, "modified ") }

func adds(f *Failure) bool { return strings.HasPrefix(f.Violation.About, "added ") }
