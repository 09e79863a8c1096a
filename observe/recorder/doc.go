// SPDX-License-Identifier: Apache-2.0

// Package recorder keeps the last reconciles of each object: why they ran, their steps, their calls with what these
// changed, and how they ended.
//
// Add a recorder to a manager before the manager starts:
//
//	r := recorder.New(recorder.Options{})
//	observe.Of(mgr).Add(r)
//
// Package [trueup.dev/console] does that, and serves what the recorder has as web pages and as JSON.
//
// # What is kept
//
// The memory for all objects together is limited, see [Options]. Successful reconciles are dropped before failed ones,
// and old ones before new ones. Of each object, the recorder keeps at most 16 successful and 16 failed reconciles.
// While an object fails, the reconcile that failed first is one of these.
//
// A reconcile that succeeds without a write is only counted; the last one of each object is kept, without the reads
// from caches, which are counted for each step.
//
// # What is not kept
//
// The recorder keeps no objects, only the paths and values of changed fields, unless [Options.Objects] is set. It never
// keeps values of Secrets, nor the values that [Options.Mask] hides. The texts of errors are kept as they are, up to 1
// KiB each; an API server may quote an invalid value in them.
//
// # Recordings
//
// With [Options.Objects], the recorder also keeps the objects of the answers of calls, each version once, of the last
// 100 reconciles of each object that saw or did anything new. [Recorder.Recording] returns them in the format of
// package [trueup.dev/observe/recording], and converge.FromRecording makes a test of it.
package recorder
