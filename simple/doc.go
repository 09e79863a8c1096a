// SPDX-License-Identifier: Apache-2.0

// Package simple makes apps of a config: kinds, with a handler for each.
//
//	app, err := simple.NewApp(simple.AppConfig{
//		Name:       "myapp",
//		KubeConfig: *ctrl.GetConfigOrDie(),
//		ManagedKinds: []simple.AppManagedKind{{
//			Kind: myKind,
//			Watcher: &simple.Watcher{
//				AddFunc:    add,
//				UpdateFunc: update,
//				DeleteFunc: remove,
//			},
//		}},
//	})
//	...
//	err = app.Run(ctrl.SetupSignalHandler())
//
// # Handlers
//
// A handler is one of three: a Watcher has a function for each sort of event, a Reconciler has one for all, see package
// operator; a SubReconciler is a tree of reconcilers, see package reconcilers, that compares what is with what should
// be. [Watcher] and [Reconciler] are made of functions.
//
// ManagedKinds are those of the app: their objects are kept by a finalizer until the handler has dealt with their
// deletion, and changes of the status and of metadata do not count, unless ReconcileOptions say otherwise.
// UnmanagedKinds belong to others and are only watched.
//
// Handlers that read and write objects are made with [Clients], before the app is made.
//
// # Admission and conversion
//
// A [Mutator] sets what can be told from the object itself, before it is stored: better there than in a handler, which
// comes later and has to write. A [Validator] turns down what must not be. A [Converter] is for kinds with several
// versions, [HubConverter] for Go types. All of them are webhooks: the API server has to be told where they are, see
// [App.WebhookConfigurations] and [App.CustomResourceConversion], and needs to trust their certificate.
//
// # Running
//
// An [App] is a manager of controller-runtime. It elects a leader if it runs in a pod, serves metrics and health, waits
// for handlers when it is stopped, and recovers from their panics. [App.Manager] is for whatever else a manager can do.
// An [AppProvider] is for those who have a manifest; an operator.Runner runs it.
package simple
