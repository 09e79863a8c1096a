// SPDX-License-Identifier: Apache-2.0

package converge

import "strings"

// hint tells what a failure often comes from.
func hint(f *Failure) string {
	has := func(faults ...Fault) bool {
		for _, d := range f.schedule {
			for _, fault := range faults {
				if d.fault == fault {
					return true
				}
			}
		}
		return false
	}
	v := f.Violation
	lag := has(LagRead, LagReconcile, LagLong, Relist, Stale)
	switch {
	case v.Oracle == scenarioItself:
		return "the scenario itself does not work, with no fault at all"
	case v.Oracle == Duplicates && lag && strings.Contains(v.Message, " deleted, "):
		return "a deletion was based on an old cache: use preconditions (UID, resource version), and ask the API server " +
			"before what cannot be undone"
	case v.Oracle == Duplicates && (lag || has(TimeoutApplied, CrashAfter, HandOver)):
		return "created again because an earlier creation was not seen: give it a name that does not change, or record the " +
			"name before creating"
	case v.Oracle == Deletion && strings.Contains(v.Message, "finalizer yet"):
		return "add the finalizer, and have it stored, before the first effect outside of the cluster"
	case v.Oracle == Deletion && strings.Contains(v.Message, "is not gone"):
		return "a finalizer is not removed: is an error of the cleanup swallowed, or is what is already gone taken for an " +
			"error?"
	case (v.Oracle == Deletion || v.Oracle == EndState) && has(Restart, Resync) &&
		strings.Contains(v.Message, "should not be there"):
		return "who begins anew, or sees all again, does more than who has seen it all: look whether it is the run without " +
			"faults that is wrong"
	case v.Oracle == Deletion && (lag || has(CrashBefore, CrashAfter, HandOver)):
		return "what is to be deleted was not seen, or forgotten: look for it with each reconcile, and at the API server " +
			"before the finalizer goes"
	case v.Oracle == Deletion:
		return "set an owner reference, or delete it with a finalizer on the way"
	case v.Oracle == Idempotence && strings.HasSuffix(v.Message, onlyOnce):
		return "nobody has noticed that it was due: is there a watch for what it depends on, and does no mapping or " +
			"predicate take an event for nothing?"
	case v.Oracle == Idempotence:
		return "compare before writing: defaults of the API server, the order of maps and lists, and times must not count " +
			"as changes"
	case v.Oracle == Quiescence && strings.Contains(v.Message, "nothing to do"):
		return "do not ask for another reconcile when all is done, or only after some seconds"
	case v.Oracle == Quiescence && has(Conflict):
		return "after a conflict, return the error and read anew: a request with the same version fails for ever"
	case v.Oracle == Quiescence && has(Exists):
		return "what exists already may be somebody else's: look at its owner, and try again later"
	case v.Oracle == Quiescence:
		return "something is written in each reconcile, or fails in each: see the last lines"
	case v.Oracle == Status && strings.Contains(v.Message, "is rolled out"):
		return "compare status.observedGeneration of the workload to its generation: until they are the same, its numbers " +
			"are those of before"
	case v.Oracle == Status && strings.Contains(v.Message, "although"):
		return "have the condition tell what is there now, and watch what it depends on"
	case v.Oracle == Status:
		return "set observedGeneration to the generation that was worked on, of the object as it was read, and only when " +
			"the work is done"
	case v.Oracle == Errors && strings.Contains(v.Message, "panics"):
		return "check for what may be missing in an object that was just created, or is being deleted"
	case v.Oracle == Errors:
		return "return the error as it is: a terminal error is not tried again"
	case v.Oracle == SharedObjects:
		return "copy objects before changing them: they are those of the cache"
	case v.Oracle == Leaks:
		return "have goroutines end with the context"
	case v.Oracle == EndState && strings.Contains(v.Message, "undoes what somebody else"):
		return "keep the version that the object was read with, and after a conflict make the change to what is read anew"
	case v.Oracle == EndState && has(TimeoutLost, TooManyRequests, ServerError, TimeoutApplied):
		return "an error is swallowed: return it, so that the request is tried again"
	case v.Oracle == EndState && has(CrashBefore, CrashAfter, HandOver, Restart):
		return "what was to be done after the crash is not done any more: decide by what is there, not by what was done " +
			"before"
	case v.Oracle == EndState && has(Deleted, Recreated, ChildDeleted):
		return "what somebody deletes does not come back: watch it, and look whether it is there each time"
	case v.Oracle == EndState && has(Relist, Resync):
		return "decide by what is there, not by which event told of it: events can be missed"
	case v.Oracle == EndState && has(Overtaken):
		return "reconciles of several workers share something: keep what belongs to one reconcile in variables of it, and " +
			"lock the rest"
	case v.Oracle == EndState && has(ListOrder):
		return "sort what comes out of a list, which has no order"
	case v.Oracle == EndState && lag:
		return "a decision was based on an old cache: use preconditions (UID, resource version), so that the API server " +
			"refuses it"
	}
	return ""
}
