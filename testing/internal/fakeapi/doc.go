// SPDX-License-Identifier: Apache-2.0

// Package fakeapi is the API in memory that table tests use: the fake client of controller-runtime with the objects a
// case is given.
//
//	c, tracker, err := fakeapi.New(fakeapi.Options{Scheme: scheme, Given: objects})
//
// Three things are added to the fake client, each as a layer around the client or below it:
//
//   - Kinds that the scheme does not have can be used, without a change of the scheme (kinds.go).
//   - An apply configuration reaches the store as the caller has passed it. The fake client itself converts it to a Go
//     type first, which applies the zero values of fields that the caller did not apply (apply.go).
//   - A realistic API treats writes more as a server does: UIDs, generations, resource versions, managed fields, and
//     the status on creation (the realism files).
//
// The package is not based on [trueup.dev/internal/memapi], which is closer to a server. That API validates objects,
// needs namespaces, counts one resource version for all objects and cannot be built with a fake.ClientBuilder: cases
// with objects reduced to what matters, with resource versions such as "999" and "1000" and with WithClientBuilder
// would fail. It also needs modules that users of package testing do not depend on.
package fakeapi
