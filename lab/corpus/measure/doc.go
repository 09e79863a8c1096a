// SPDX-License-Identifier: Apache-2.0

// Package measure evaluates package converge: how many bugs of the corpus and how many mutants it finds, how many false
// alarms it raises for correct reconcilers, and its cost. Package corpus prints the report.
package measure
