// SPDX-License-Identifier: Apache-2.0

// Package observe shows what controllers do: why each reconcile ran, which steps it took, which calls it made, and how
// it ended.
//
// A [Hub] belongs to a manager. It receives the events of all controllers of the manager that are built with this
// module, and passes them to its listeners:
//
//	observe.Of(mgr).Add(listener)
//
// Reconcilers of package reconcilers and of package operator need nothing else. For a controller that is built with
// controller-runtime alone, see [Controller].
//
// Without listeners, a reconcile costs what it costs without this package.
package observe
