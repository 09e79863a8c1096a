// SPDX-License-Identifier: Apache-2.0

// Package call describes a call of a client as one value, and makes a [client.Client] of one function on such values.
//
// A client that observes, changes, delays or answers the calls of another client treats most verbs alike. With this
// package it is one function:
//
//	call.NewClient(inner, func(ctx context.Context, c call.Call) error {
//		log.Println(c.Verb, c.Subresource)
//		return c.Do(ctx, inner)
//	})
//
// No other package lists the verbs of controller-runtime for this purpose. If controller-runtime adds a verb, this
// package no longer compiles: add a [Verb], a method of the client, and a case of [Call.Do]. Then read the functions
// that are passed to [NewClient]: those with a default case treat the new verb as a write of an object.
//
// Watch is not a call: few clients can watch, and each of them has a method for it. [client.Client.Status] is the
// client of the subresource "status", as in the clients of controller-runtime.
package call
