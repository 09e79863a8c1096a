// SPDX-License-Identifier: Apache-2.0

// Package graph describes the reconcilers of a program: how they are nested, what each of them owns, tracks, watches
// and writes, and the permissions that it needs. The description comes from the wiring, without a run.
//
// [Record] calls the function that adds controllers and webhooks to a manager, with a manager that needs no cluster.
// [Of] describes reconcilers of a running program. Both return a [Graph], which prints itself as a text tree, as a
// Mermaid flowchart, as Graphviz DOT, and as JSON.
//
// For the command "trueup graph", add one line to the main function, before it connects to a cluster:
//
//	graph.Main(scheme, setUp)
//
// The reconcilers of packages reconcilers and operator describe themselves. What a function of the user reads and
// writes is unknown unless it is declared, with the field Describe of a SyncReconciler. A subreconciler, watcher or
// object manager of the user may implement [Describer]:
//
//	func (r *Quota) DescribeTo(n *graph.Node) {
//		n.Step("Quota")
//		n.ReadsKind(&corev1.ResourceQuota{})
//		n.Nest("Reconciler", r.Reconciler)
//	}
//
// The path of a node is the path of its step in errors, events and logs; [Graph.Find] returns the node of a step.
package graph
