// SPDX-License-Identifier: Apache-2.0

package simple

import "trueup.dev/resource"

// Second names, most of them of Grafana App SDK. `go fix` replaces them.

// BasicReconcileOptions are the [ReconcileOptions] of managed kinds.
//
// Deprecated: use [ReconcileOptions].
//
//go:fix inline
type BasicReconcileOptions = ReconcileOptions

// UnmanagedKindReconcileOptions are the [ReconcileOptions] of unmanaged kinds.
//
// Deprecated: use [ReconcileOptions].
//
//go:fix inline
type UnmanagedKindReconcileOptions = ReconcileOptions

// TypedWatcher is [WatcherFuncs]. It is not the interface [trueup.dev/operator.TypedWatcher].
//
// Deprecated: use [WatcherFuncs].
//
//go:fix inline
type TypedWatcher[T resource.Object] = WatcherFuncs[T]
