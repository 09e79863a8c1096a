// SPDX-License-Identifier: Apache-2.0

// Package recording is the format of recordings: what a controller saw and did for one object, as JSON.
//
// [trueup.dev/observe/recorder] makes recordings if its option Objects is set, the console and "trueup record" write
// them to files, and converge.FromRecording turns such a file into a test.
//
// # What a recording contains
//
// A recording has the reconciles of one object: why each ran, its calls and their answers, and how it ended. Each
// version of each object that a cause or an answer had is there once, with the first run or call that had it. Values
// of Secrets and those that the mask of the recorder hides are replaced, see [trueup.dev/observe.Mask.Encode].
//
// Reads from caches are only there if they returned something new, or something old: [Call.Stale] lists what a call
// returned although an earlier one had returned or written a newer version. Reconciles without any of that are counted.
//
// # What it does not contain
//
// Calls to systems outside of the cluster, other clients' calls, and objects that the controller neither read nor was
// told about. Texts of errors are kept as they are; an API server may quote an invalid value in them. So look at a
// recording before you pass it on.
package recording
