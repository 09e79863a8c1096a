// SPDX-License-Identifier: Apache-2.0

// Package ctrlfields reads, and in three places sets, the fields of controller-runtime that it does not export, and the
// fields of its internal types. Only this package depends on them. It has no policy: its functions return what the
// fields contain, and false or nothing if a field does not exist or has another type. What works without a field is
// decided by the callers. A test names what users lose when a field is gone.
//
// # Proposal to controller-runtime
//
// Frameworks on top of controller-runtime observe, check and test controllers that their users build with package
// builder. These accessors would replace each access of this package:
//
//   - builder: func (*TypedBuilder[request]) Inputs() Inputs, with For, Owns, Watches and the raw sources, each with
//     its object, handler, predicates and projection, and with the predicates of WithEventFilter. A framework can then
//     report before the start that a controller reads a kind in another form than it watches, or tracks objects of a
//     kind that it does not watch. Today builders can be written and not read.
//   - builder: func (*TypedBuilder[request]) WithNewController(New), the function that Build calls instead of
//     controller.NewTyped. The field exists for the tests of the builder. A framework can then wrap the reconciler and
//     the sources of each controller, for traces and metrics, without a function of its own in place of the builder.
//   - source: an exported interface of the result of source.Kind, with the methods Object, Cache, Predicates and
//     WithHandler. The fields of its type are exported and the type is internal. A framework can then record which
//     event caused a request, and name the kind that a controller waits for when it starts.
//   - controller: an interface of the result of controller.New with the methods Name, Options, WrapReconciler,
//     SetNewQueue and Enqueue. The fields are exported and the type is internal. A test can then run
//     the controllers that the function main of its subject adds to a manager, with a queue that it controls.
//   - cache: func (Informers) All() iter.Seq2[schema.GroupVersionKind, Informer], the informers that have been started,
//     and func (Cache) Namespaces(schema.GroupVersionKind) []string. A manager whose cache is never filled can then say
//     which kinds it waits for, and try the list that fails.
//   - client: func (client.Client) IsCached(runtime.Object) bool: whether reads of an object use the cache, with
//     DisableFor and Unstructured of the options. A framework then knows whether a watch delivers what is read.
package ctrlfields
