// SPDX-License-Identifier: Apache-2.0

// Package step runs the steps of all built-in reconcilers.
//
// A step is one call of a node in the tree of reconcilers. [Run] adds its name to the logger and reports its start and
// its finish to the [Observer] on the context, if any. It records in the [Trace] of the request which steps a panic or
// an error passes on its way up. Reconcilers therefore neither build loggers nor measure time, and errors are not
// changed. Without an observer and a logger on the context, a step allocates nothing.
package step
