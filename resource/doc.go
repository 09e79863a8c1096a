// SPDX-License-Identifier: Apache-2.0

// Package resource describes kinds of objects and provides stores to read and write them.
//
// # Kinds
//
// A [Kind] consists of a Go type for objects, a Go type for lists, and their names in the API. Every type that a
// controller-runtime client accepts can be used: generated types, the types of Kubernetes, unstructured types. Your own
// kind needs no generated code:
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
//	var myKind = resource.Kind{
//		Schema: resource.NewSimpleSchema("example.com", "v1", &MyKind{}, &MyKindList{}, resource.WithKind("MyKind")),
//	}
//
// Kinds must be registered in the scheme of the manager or client, see [AddToScheme]. Two kinds must not have the same
// Go type: define a spec type for each. To switch to generated code, replace the aliases by structs with the same
// fields, and add methods such as GetStaticMetadata if you use them. Stored objects do not change.
//
// # Stores
//
// A [TypedStore] is a client for one kind that accepts and returns its Go type. A [Store] is a client for several kinds
// by name:
//
//	clients := resource.NewClientGenerator(config.Client, config.APIReader)
//	store, err := resource.NewTypedStore[*MyKind](myKind, clients)
//	...
//	obj.Status.LastAppliedGeneration = obj.GetGeneration()
//	obj, err = store.UpdateSubresource(ctx, obj.GetStaticMetadata().Identifier(), resource.SubresourceStatus, obj)
//
// Stores never change their arguments, so a failed write leaves the object unchanged. They write only what the caller
// changed. An update requires the resource version that was read, and returns a conflict if another client changed the
// object since. A reconciler returns that error and is called again with the current object. Other code uses
// [UpdateObject].
//
// Stores read from the cache of a manager's client, unless the source is [Live]. They write with the given context
// through the given client. In a reconciler, use the context of the request and the client of the reconciler's config,
// so that the reconciler does not act on caches that lack its own writes.
package resource
