// SPDX-License-Identifier: Apache-2.0

// Package logs writes one line for each reconcile that did something: why it ran, which steps wrote what, how long it
// took, and how it ended.
//
//	observe.Of(mgr).Add(logs.New(mgr.GetLogger(), logs.Options{}))
//
// A reconcile that wrote nothing and did not fail has no line, except the first one after a failed reconcile. A line
// that is equal to the line before of the same object is not written. Instead, the number of repetitions is written
// before the next different line of the object, and with the line itself after [Options.RepeatInterval].
package logs
