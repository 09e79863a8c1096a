// SPDX-License-Identifier: Apache-2.0

// Package apply implements field ownership of an API server: it merges apply configurations into live objects, and
// updates metadata.managedFields for all types of writes.
//
// It uses the merge library of Kubernetes. Lists and maps of built-in kinds are merged as their Go types declare, lists
// and maps of custom resources as the schema of their definition declares. Without a definition, a list is atomic: it
// is one value with one owner.
//
// Differences from a real server: a list that is sent empty to a built-in kind has no owner. Applying an empty list to
// a custom resource without the list is not a change, while a real server updates the time of the entry.
package apply
