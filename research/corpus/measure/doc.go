// SPDX-License-Identifier: Apache-2.0

// Package measure finds out how good package converge is: how many bugs of the corpus and how many mutants it finds,
// how often it is wrong about correct reconcilers, and what it costs. The report of package corpus prints what it
// measures.
package measure
