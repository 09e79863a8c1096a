// SPDX-License-Identifier: Apache-2.0

// Package kinds defines the kinds that an API server serves: their scope and plural, whether they have a status
// subresource and count generations, their defaults and validation.
//
// A [Registry] is created once from a scheme and custom resource definitions, and shared by all servers. Kinds of
// Kubernetes are built in. Custom kinds behave as their definition says. Kinds of the scheme without a definition have
// no schema.
//
// A server calls the methods of a [Kind] in the order of a real server: Default after decoding, then PrepareForCreate
// and Validate, or PrepareForUpdate and ValidateUpdate, or PrepareForStatusUpdate and ValidateStatusUpdate, and stores
// the object after Normalize. The methods change only the object that they are called with, which may share content
// with the old object afterwards.
//
// Differences from a real server:
//   - Each version of a kind without a definition is a separate kind: there is no conversion.
//   - Cluster IPs and node ports are derived from the name and UID of a service instead of allocated from a pool. Two
//     services may get the same ones, and a service may request those of another service.
//   - Of the validation of built-in kinds, only the rules that reconcilers encounter are implemented: required fields,
//     selectors that must match, immutable fields. Errors about structures show them as JSON instead of as the
//     internal types of a server.
//   - Of the admission plugins, only those for the default priority and tolerations of pods are implemented. Pods get
//     no service account and no limits, claims and volumes get no finalizer and no storage class.
//   - Schemas with x-kubernetes-preserve-unknown-fields preserve fields that the Go type of a kind does not have only
//     if the scheme does not have the kind.
package kinds
