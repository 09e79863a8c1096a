// SPDX-License-Identifier: Apache-2.0

// Package generations keeps a promise to people who come from reconciler.io runtime or from one of the generations of
// reconciler-runtime before it: what the documentation of their version shows compiles here, once it has the type
// parameters that the older generations lacked, and does what it did.
//
// There is a file for each generation, and in it a test for each documented example that is spelled differently from
// the generation before:
//
//	v05_test.go      reconciler-runtime v0.1 to v0.5: ParentReconciler, functions that are not typed
//	v11_test.go      reconciler-runtime v0.6 to v0.11: ResourceReconciler with a Type, AggregateReconciler, webhooks
//	v19_test.go      reconciler-runtime v0.12 to v0.19: type parameters, child sets, flow control
//	runtime_test.go  reconciler.io runtime v0.20 and later: object managers, advice, typed stashers
//
// The tests that their documentation shows are in files testkit_*_test.go, and what replaces names that are gone in
// files mended*_test.go. moved_test.go runs the commands of the migration guides on whole programs; rows_table_test.go
// has the tests of each row of the guides.
//
// Old names are used as they were documented; gofix_test.go shows which of them `go fix` replaces. The kinds are small
// ones of this package.
package generations
