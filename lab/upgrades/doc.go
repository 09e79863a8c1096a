// SPDX-License-Identifier: Apache-2.0

// Package upgrades contains small controllers whose new version has a bug that only an upgrade or a rollback shows,
// each with a version without the bug.
//
// converge.Upgrade is measured with it: it must find [All] bugs, and must not report a correct version. Each version
// converges alone.
package upgrades
