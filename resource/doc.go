// SPDX-License-Identifier: Apache-2.0

// Package resource describes kinds of objects, and stores and reads objects of them.
//
// # Kinds
//
// A [Kind] is a Go type for objects, one for lists, and how the API calls them. Any type does that a controller-runtime client takes: generated ones, those of
// Kubernetes, unstructured ones. A kind of your own needs no generated code to start with:
//
//	type MyKindSpec struct {
//		SomeInfo string `json:"someInfo"`
//	}
//
//	type MyKindStatus struct {
//		LastAppliedGeneration int64 `json:"lastAppliedGeneration,omitempty"`
//	}
//
//	type (
//		MyKind     = resource.TypedSpecStatusObject[MyKindSpec, MyKindStatus]
//		MyKindList = resource.TypedList[MyKind]
//	)
//
//	var myKind = resource.Kind{Schema: resource.NewSimpleSchema("example.com", "v1", &MyKind{}, &MyKindList{}, resource.WithKind("MyKind"))}
//
// Kinds have to be in the scheme of a manager or client, see [AddToScheme]. Two kinds must not have the same Go type: give each a spec type of its own.
// To move on to generated code, replace the aliases by structs with the same fields, and methods such as GetStaticMetadata where they are used; stored objects
// stay as they are.
//
// # Stores
//
// A [TypedStore] is a client for one kind that takes and returns its Go type, a [Store] one for several kinds by name:
//
//	clients := resource.NewClientGenerator(config.Client, config.APIReader)
//	store, err := resource.NewTypedStore[*MyKind](myKind, clients)
//	...
//	obj.Status.LastAppliedGeneration = obj.GetGeneration()
//	obj, err = store.UpdateSubresource(ctx, obj.GetStaticMetadata().Identifier(), resource.SubresourceStatus, obj)
//
// Stores never change the object they are given, so that a failed write leaves it as it was, and never write what the caller has not asked for. An update
// needs the resource version that was read, and is a conflict when somebody else has been faster. A reconciler returns that error, to be called again with
// what is there by then; anybody else uses [UpdateObject].
//
// Stores read from the cache of a manager's client, unless told to read [Live]. They write with the context they are given, through the client they are
// given: in a reconciler these are the context of the request and the client of the reconciler's config, so that it does not act on caches that have not
// seen its own writes.
package resource
