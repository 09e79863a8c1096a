// SPDX-License-Identifier: Apache-2.0

// Package apply does what an API server does about the owners of fields: it merges applied configurations into live
// objects, and keeps metadata.managedFields for all kinds of writes.
//
// Merging is that of Kubernetes' own libraries. Lists and maps of Kubernetes' kinds are merged as their Go types say,
// those of custom resources as the schema of their definition says. Without a definition, what a list means is not
// known: it is one value that has one owner.
//
// Differences from a real server: a list that is sent empty to a kind of Kubernetes has no owner, and applying an empty
// list to a custom resource that has none is no change, where a real server notes the time of it.
package apply
