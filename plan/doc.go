// SPDX-License-Identifier: Apache-2.0

// Package plan shows what controllers would change in a cluster, before they do it.
//
// A plan runs the reconcilers of a program against a cluster, and keeps their writes in memory. Reads return what would
// have been written. So a reconciler runs to its end as it does in production, and the reconciles that its writes
// trigger follow, until no request is left. The result is a [Plan]: objects that are created, updated and deleted, with
// the fields that differ, the objects that garbage collection deletes with them, and events.
//
// With one line in the main function, a program has the command "plan":
//
//	func main() {
//		plan.Main(scheme, setUp)
//
//	$ myoperator plan database default/main
//	$ myoperator plan --all-namespaces --summary
//
// Tests call [Run] or a [Planner], with the client of a real or a fake API server.
//
// # What the API server decides
//
// For each write, the API server is asked by a server-side dry run what it would store: its defaults, webhooks and
// refusals are the ones of the cluster. A dry run requires the permission for the write. Where it is forbidden, the
// plan uses the defaults and the validation that it knows, and says so in [Plan.Unknown]. A plan only needs the verbs
// get, list and watch.
//
// A program with this package contains parts of an API server, and is about 17 MB larger.
//
// # What really happens
//
// A plan executes the code of the reconcilers. Requests with the manager's clients never write. Everything else that
// the code does really happens: calls of a cloud, of a database or of another cluster. Guard such calls with
// [trueup.dev/external.Announce]. Clients that are made from the manager's rest.Config can make no request.
//
// Other controllers do not act during a plan: no Pod starts, and no Deployment becomes available, unless
// [Options.AssumeReady] is set. After a reconcile
// that has written something, RequeueAfter is a request for another reconcile at once. Otherwise it is reported.
package plan
