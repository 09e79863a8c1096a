// SPDX-License-Identifier: Apache-2.0

// Package logging is a small, leveled logger over the one that controller-runtime puts on the context of every request.
//
//	logging.FromContext(ctx).Info("applied", "name", obj.GetName(), "generation", obj.GetGeneration())
//
// [FromContext] finds what [logr.NewContext] has put on the context, with all its names and values; [Context] puts a [Logger] where [logr.FromContext] and
// controller-runtime's log.FromContext find it. The two can be mixed freely. What a program logs to is chosen where it always is, with controller-runtime's
// SetLogger; a context without a logger leads there, too.
//
// # Levels
//
// There are four, and what logs decides what they are called:
//
//	         logr               slog, also by way of logr
//	Debug    V(1)               DEBUG
//	Info     V(0)               INFO
//	Warn     V(0), see below    WARN
//	Error    error              ERROR
//
// Logr has no warnings. One is passed on as such if the sink also takes those of slog, as the sinks of zap and klog do; others get an Info with the pair
// "severity", "warning". It is not an error there, because errors of logr cannot be turned off, and are often counted.
//
// # Errors
//
// Pass the error under the key "error": logr then has it as the error of the entry rather than as one of its values.
//
//	logging.FromContext(ctx).Error("not applied", "error", err)
//
// # Cost
//
// Entries of a level that is turned off are not made: what remains is the caller's list of values. Loggers are safe for concurrent use.
package logging
