// SPDX-License-Identifier: Apache-2.0

// Package kinds holds what an API server knows of the kinds it serves: their scope and plural, which of them have a
// status subresource and count generations, what they default, drop and refuse.
//
// A [Registry] is made once from a scheme and custom resource definitions, and shared by all servers. Kinds of
// Kubernetes are known by name. Custom kinds behave as their definition says; those of the scheme without a definition
// are kinds without a schema.
//
// A server takes an object through the methods of its [Kind] in the order of a real one: Default after decoding, then
// PrepareForCreate and Validate, or PrepareForUpdate and ValidateUpdate, or PrepareForStatusUpdate and ValidateUpdate,
// and stores what Normalize makes of it. All of this changes only the object it gets, which may share content with the
// old one afterwards.
//
// Differences from a real server:
//   - Versions of a kind are kinds of their own: there is no conversion.
//   - Cluster IPs and node ports are derived from name and UID of a service, and are not taken from a pool: two
//     services may
//     get the same, and one can ask for what another one has.
//   - Of the validation of Kubernetes' own kinds there is what reconcilers run into: required fields, selectors that
//     select, immutable fields. Errors about
//     whole structures show them as they are in JSON, and not as the server's internal types.
//   - Of the admission plugins there is what gives pods their default priority and tolerations. They get no service
//     account and no limits, claims and
//     volumes no finalizer and no storage class.
//   - Schemas with x-kubernetes-preserve-unknown-fields keep what the Go type of a kind has no field for only if the
//     scheme does not know the kind.
package kinds
