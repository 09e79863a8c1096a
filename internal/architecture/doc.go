// SPDX-License-Identifier: Apache-2.0

// Package architecture holds the tests that keep the structure of the project: who may import whom, and what users inherit as dependencies.
package architecture
