// SPDX-License-Identifier: Apache-2.0

// Package logging provides a small, leveled logger on top of the logger that controller-runtime puts on the context of
// every request.
//
//	logging.FromContext(ctx).Info("applied", "name", obj.GetName(), "generation", obj.GetGeneration())
//
// [FromContext] returns the logger that [logr.NewContext] put on the context, with its names and values. [Context] puts
// a [Logger] on the context so that [logr.FromContext] and controller-runtime's log.FromContext find it. Both APIs can
// be mixed. Choose the backend with controller-runtime's SetLogger as usual; it is also used for contexts without a
// logger.
//
// # Levels
//
// The backend determines the names of the four levels:
//
//	         logr               slog, also by way of logr
//	Debug    V(1)               DEBUG
//	Info     V(0)               INFO
//	Warn     V(0), see below    WARN
//	Error    error              ERROR
//
// Logr has no warnings. A warning is passed on as a warning if the sink also supports warnings of slog, as the sinks of
// zap and klog do. Other sinks get an Info entry with the pair "severity", "warning". It is not an error entry, because
// errors of logr cannot be disabled and are often counted.
//
// # Errors
//
// Pass the error under the key "error": with logr it becomes the error of the entry instead of one of its values.
//
//	logging.FromContext(ctx).Error("not applied", "error", err)
//
// # Cost
//
// No entry is created for a disabled level. The only cost is the list of values that the caller creates. Loggers are
// safe for concurrent use.
package logging
