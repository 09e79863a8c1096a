// SPDX-License-Identifier: Apache-2.0

// Package recordings makes tests of recordings of the bugs of package corpus: of runs in memory, which the tests of the
// corpus make, and of runs under load in a sandbox, which the tests of this package make.
package recordings
