// SPDX-License-Identifier: Apache-2.0

// Package migrate rewrites the Go files of a module from reconciler.io runtime, its ancestors or the Grafana App SDK to
// trueup. It is the command "trueup migrate".
//
// The old modules can often no longer be built, and the code does not compile with trueup before the move. Therefore
// the package works on syntax: it resolves identifiers with go/types while all other modules are empty packages, and
// reads types where the source states them. The rules are tables in tables.go: names, fields, and the rows of the
// guides for what has no rule. The type parameters of the first two generations are inferred in params.go, by
// unification: a SyncReconciler has the type that its function takes, and whatever contains it has the same type.
//
// Changes are edits of byte ranges. The rest of a file, and all comments outside of removed fields, stay as they are.
package migrate
