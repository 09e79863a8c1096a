// SPDX-License-Identifier: Apache-2.0

// Package simple makes an app from a config: a list of kinds, with a handler for each.
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
// A handler is one of three types. A Watcher has a function for each type of event, and a Reconciler has one function
// for all events: see package operator. A SubReconciler is a tree of reconcilers that compares actual and desired
// state: see package reconcilers. [Watcher] and [Reconciler] call functions.
//
// ManagedKinds are the app's own kinds. By default, a finalizer keeps their objects until the handler has handled the
// deletion, and changes of the status and of metadata do not call the handler. ReconcileOptions can change this.
// UnmanagedKinds belong to other owners and are only watched.
//
// To read and write objects in a handler, make the handler with [Clients] before you make the app.
//
// # Admission and conversion
//
// A [Mutator] sets defaults that depend only on the object itself, before it is stored. This saves the write of a
// handler, which runs later. A [Validator] rejects invalid objects. A [Converter] is for kinds with several versions;
// use [HubConverter] for Go types. All of them are webhooks. The API server must know their address, see
// [App.WebhookConfigurations] and [App.CustomResourceConversion], and must trust their certificate.
//
// # Running
//
// An [App] is a controller-runtime manager. It elects a leader if it runs in a pod, serves metrics and health, waits
// for handlers when it stops, and recovers from their panics. [App.Manager] gives access to all other features of the
// manager. An [AppProvider] combines an app with a manifest; an operator.Runner runs it.
package simple
