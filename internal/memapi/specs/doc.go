// SPDX-License-Identifier: Apache-2.0

// Package specs generates values for the properties of an object, from the schema of its kind.
//
// [Properties] walks through the schema of a custom resource, together with the content of one object, and lists what a
// user can change: scalars, items of lists, keys of maps, and optional objects. [SchemaOf] returns the schema of a Go
// type, for kinds without a definition.
//
// The values are candidates. The schema rules out most invalid ones, but rules in CEL are not evaluated, and what a
// property means is guessed from its name, its pattern and its present value: an image, a quantity, a duration, a
// schedule, a host. An API server decides what is valid. Values that are valid for most schemas and nevertheless not
// meaningful, like an empty host or a negative number, are marked as doubtful.
//
// The result depends on nothing but the arguments.
package specs
