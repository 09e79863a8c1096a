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
//     services may get the same ones, and a service may request the ones of another service.
//   - Of the validation of built-in kinds, only the rules that reconcilers encounter are implemented: required fields,
//     selectors that must match, immutable fields. Errors about structures show them as JSON instead of as the
//     internal types of a server.
//   - Of the admission plugins, only those for the default priority and tolerations of pods are implemented. Pods get
//     no service account and no limits, claims and volumes get no finalizer and no storage class.
//   - Schemas with x-kubernetes-preserve-unknown-fields preserve fields that the Go type of a kind does not have only
//     if the scheme does not have the kind.
//
// # Why the rules are repeated
//
// Each rule names the functions of Kubernetes that it repeats, in lines that start with "Upstream:". A test compares
// them with the sources of the control plane. The functions themselves are not called, although they need no replace
// directives if go.mod requires all 31 modules that k8s.io/kubernetes stages. Measured with version 1.37.1:
//
//   - The main module would require them, because packages plan, converge and sandbox/memory use this one. Its users
//     would compile 20 more modules, among them grpc and OpenTelemetry, and load 255 instead of 167. The zip of
//     k8s.io/kubernetes has 22 MB, and 124 MB unpacked.
//   - A test binary of converge has 1,315 packages instead of 983, and 127 MB instead of 111 MB. It uses 26 MB more
//     memory when it starts. The additional packages take about 140 seconds of processor time to compile.
//   - To default, convert and validate a new Deployment takes 2.2 times as long as here, and a changed one 4.8 times.
//     Schedules of converge allocate 20 % more and are 7 to 17 % slower.
//   - The options of the validation, and the merging of the errors of written and generated rules, are in pkg/registry
//     and k8s.io/apiserver. They would still be repeated here for each kind.
package kinds
