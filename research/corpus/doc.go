// SPDX-License-Identifier: Apache-2.0

// Package corpus has small reconcilers with bugs that happened in real controllers, and next to each the same
// reconciler without the bug.
//
// It is what package converge is measured by: [All] bugs have to be found, and a correct reconciler must never be
// reported. To look for the bug of an entry:
//
//	report, err := converge.Check(t, entry.Buggy(), converge.DefaultOptions())
//
// The reconcilers are written as people write them with controller-runtime. The classes of bugs are
//
//	C1   a crash between two writes
//	C2   a stale read, and something is created twice
//	C3   a stale read, and the wrong thing is deleted or changed
//	C4   a transition that is acted upon only by who sees it happen
//	C5   a cache that begins in the past after a restart
//	C6   a conflict, or an existing or missing object, that is taken for something else
//	C7   a request that times out and has an effect all the same
//	C8   something is done although there is nothing to do
//	C9   reconciles that trigger themselves
//	C10  finalizers that come too late, go too early, or never
//	C11  something is left over after a deletion
//	C12  a status that does not tell the truth
//	C13  a watch, predicate or mapping that is missing or wrong
//	C14  an error that nobody tries again after
//	C15  an order that is not certain, a shared object that is changed, or a shape that was not expected
package corpus
