// SPDX-License-Identifier: Apache-2.0

// Package corpus contains small reconcilers with bugs that happened in real controllers, each with a version without
// the bug.
//
// Package converge is measured with it: it must find [All] bugs, and must not report a correct reconciler. To search
// for the bug of an entry:
//
//	report, err := converge.Check(t, entry.Buggy(), converge.DefaultOptions())
//
// The reconcilers are written as people write them with controller-runtime. The classes of bugs are
//
//	C1   a crash between two writes
//	C2   a stale read, and an object is created twice
//	C3   a stale read, and the wrong object is deleted or changed
//	C4   a transition that is handled only when it is observed
//	C5   a cache that starts in the past after a restart
//	C6   a conflict, or an existing or missing object, that is handled in the wrong way
//	C7   a request that times out and has an effect nevertheless
//	C8   writes although everything is up to date
//	C9   reconciles that trigger themselves
//	C10  finalizers that are added too late, or removed too early or never
//	C11  an object that stays after it is no longer wanted
//	C12  a wrong status
//	C13  a watch, predicate or mapping that is missing or wrong
//	C14  an error without a retry
//	C15  an order that is not guaranteed, a change of a shared object, or an unexpected shape
//	C16  objects that a controller wrongly takes for its own, or not
package corpus
