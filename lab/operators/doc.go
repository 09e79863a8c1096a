// SPDX-License-Identifier: Apache-2.0

// Package operators runs controllers of public operators in scenarios of converge.
//
// The operators are Go modules of others, unchanged, at the versions in go.mod. This module builds them with the
// version of controller-runtime that trueup.dev requires. Each directory below has the scenarios of one module, as
// tests. A test calls [Check], which compares the outcome with results.json. docs/converge/operators.md shows these
// results as a table.
//
//	go test ./...                 run all scenarios
//	go test ./... -p 1 -update    record their outcomes, and write the table
//
// A test whose name ends in _server shows a finding with a real API server, see [trueup.dev/sandbox].
//
// A finding describes what was observed in a run in memory under the faults of its replay string. It does not say how
// likely that is in a cluster, and the maintainers of the operator may know it and accept it.
package operators
