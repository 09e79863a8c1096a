// SPDX-License-Identifier: Apache-2.0

// Package trueup is the root of a framework for Kubernetes controllers. It contains no code. There are three doors:
// write a controller, prove that it works, operate it. You can enter each of them alone.
//
// # Write
//
//   - [trueup.dev/reconcilers]: compose a controller from small reconcilers
//
// For example:
//
//	return (&reconcilers.ResourceReconciler[*Website]{
//		Reconciler: reconcilers.Sequence[*Website]{
//			ThemeReconciler(),         // reads a ConfigMap of another owner, and follows its changes
//			RenderReconciler(),        // computes the pages, and passes them to the next step
//			PagesReconciler(),         // creates, repairs and deletes a ConfigMap
//			RecordReconciler(records), // publishes a DNS record, and withdraws it with a finalizer
//		},
//		Config: reconcilers.NewConfig(mgr, &Website{}, 10*time.Hour),
//	}).SetupWithManager(ctx, mgr)
//
// Run it in many clusters:
//
//   - [trueup.dev/clusters]: run the controllers of a program in many clusters that come and go
//
// Or handle events, with the names of Grafana App SDK:
//
//   - [trueup.dev/operator]: handle events with watchers and reconcilers
//   - [trueup.dev/informer]: receive the objects of a kind from a source other than the cache of the manager
//   - [trueup.dev/informer/memcached]: keep the objects of an informer in memcached, in a module of its own
//   - [trueup.dev/simple]: make an app from a list of kinds, with a handler for each
//   - [trueup.dev/app]: the interfaces between an app and the code that runs it
//   - [trueup.dev/resource]: kinds without generated code, and stores of objects
//   - [trueup.dev/logging]: a small, leveled logger
//
// # Prove
//
//   - [trueup.dev/converge]: prove that a reconciler converges, whatever fails
//
// In a test:
//
//	converge.Run(t, converge.Scenario{
//		Scheme: scheme,
//		For:    &corev1.PersistentVolumeClaim{},
//		Setup:  setUp,                                                 // as in main
//		World:  []converge.Actor{converge.Jobs(converge.BecomeReady)}, // simulates the controller of Jobs
//		Steps:  converge.Lifecycle(dataClaim),                         // creates and deletes a claim
//	})
//
// Other ways to test it:
//
//   - [trueup.dev/testing]: table tests of reconcilers and webhooks
//   - [trueup.dev/sandbox]: a real Kubernetes API for tests and programs, in one local process
//   - [trueup.dev/sandbox/memory]: the same tests on an API in memory that is ready within milliseconds
//
// # Operate
//
// Know what a program would change, and what it did. In its main function:
//
//	plan.Main(scheme, setUp)  // for `trueup plan`: what would this version change in a cluster?
//	graph.Main(scheme, setUp) // for `trueup graph` and `trueup rbac`: its reconcilers, and their role
//
//	mgr, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme})
//	if err != nil {
//		return err
//	}
//	observe.Of(mgr).Add(logs.New(mgr.GetLogger(), logs.Options{})) // one line for each reconcile with an effect
//	return console.AddToManager(mgr, console.Options{})            // pages on the metrics server, at /console/
//
// The packages:
//
//   - [trueup.dev/plan]: what controllers would change in a cluster, before they do it
//   - [trueup.dev/graph]: what a program consists of, and what its reconcilers own, watch and write
//   - [trueup.dev/graph/rbac]: the permissions of a program, compared with a role and with a run
//   - [trueup.dev/shards]: divide the objects among several replicas that run at the same time
//   - [trueup.dev/console]: web pages that show why objects were reconciled, and what failed
//   - [trueup.dev/observe]: what controllers do: causes, steps, calls and results
//   - [trueup.dev/observe/logs]: one log line for each reconcile that did something
//   - [trueup.dev/observe/metrics]: the same as metrics for Prometheus
//   - [trueup.dev/observe/otel]: the same as traces of OpenTelemetry, in a module of its own
//   - [trueup.dev/observe/recorder]: the last reconciles of each object
//   - [trueup.dev/observe/recording]: files with what a controller saw and did for an object
//
// # Use in reconcilers and in the types of an API
//
//   - [trueup.dev/apis]: status and conditions of custom resources
//   - [trueup.dev/duck]: types that describe only a part of an object
//   - [trueup.dev/readiness]: how ready an object is, by the rule of its kind
//   - [trueup.dev/readiness/cel]: the same by a CEL expression
//   - [trueup.dev/external]: things outside of Kubernetes, and effects that a plan must not have
//   - [trueup.dev/stash]: pass values between the reconcilers of one request
//   - [trueup.dev/time]: one stable "now" for each request
//   - [trueup.dev/tracker]: follow objects that a resource depends on and does not own
//   - [trueup.dev/validation]: interfaces for the validation of values
//
// The command trueup.dev/cmd/trueup starts a Kubernetes API, and demonstrates the framework.
package trueup
