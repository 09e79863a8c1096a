// SPDX-License-Identifier: Apache-2.0

// Package literal prints Go values as Go expressions, for users of the test kit to paste into their tests.
//
// [Of] prints one value, and [Field] a field of a test case with a list of values:
//
//	literal.Of(types.NamespacedName{Name: "blog"})                  // types.NamespacedName{Name: "blog"}
//	literal.Field("ExpectDeletes", "rtesting.DeleteRef", observed)  // ExpectDeletes: []rtesting.DeleteRef{…},
//
// An expression compiles and is equal to the value, with these exceptions:
//
//   - A value that no expression creates, such as a function, is nil with a comment.
//   - Unexported fields are omitted.
//   - The kind of a typed object is omitted if a scheme knows its Go type.
//
// Expressions look as people write them: formatted by gofmt, with the usual names of packages, and with functions such
// as resource.MustParse, metav1.Date and the constructors of apply configurations. testdata/literals.golden has
// examples for all kinds of values.
//
// [Compared] and [ComparedValue] remove what a test does not compare before it is printed.
package literal
