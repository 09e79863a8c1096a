// SPDX-License-Identifier: Apache-2.0

// Package generations tests compatibility with reconciler.io runtime and with the earlier generations of
// reconciler-runtime. The examples in the documentation of each version must compile with trueup and behave as
// documented. Examples of the older generations only need type parameters.
//
// Each generation has a file with a test for each documented example that uses names, fields or signatures which later
// generations do not have. The tables of packages reconcilers, testing and tracker test the other examples:
//
//	v05_test.go      reconciler-runtime v0.1 to v0.5: ParentReconciler, functions that are not typed
//	v11_test.go      reconciler-runtime v0.6 to v0.11: ResourceReconciler with a Type, AggregateReconciler, webhooks
//	v19_test.go      reconciler-runtime v0.12 to v0.19: finalizers of children, halts, the time of a request
//	runtime_test.go  reconciler.io runtime v0.20 and later: object managers
//
// The documented tests are in testkit_*_test.go. The replacements for removed names are in mended*_test.go.
// moved_test.go moves whole programs by hand, as the migration guides describe it; the tests of `trueup migrate` move
// them with the command. moved_appsdk_test.go begins with the command. rows_table_test.go lists the tests of each row
// of the guides.
//
// Old names are used as they were documented; gofix_test.go shows which of them `go fix` replaces. The package defines
// its own small kinds.
package generations
