// SPDX-License-Identifier: Apache-2.0

// Package converge proves that a reconciler converges, whatever fails.
package converge
