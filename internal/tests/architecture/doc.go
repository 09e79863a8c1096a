// SPDX-License-Identifier: Apache-2.0

// Package architecture tests the structure of the project: which packages may import each other, which dependencies
// users inherit, and how long files are.
package architecture
