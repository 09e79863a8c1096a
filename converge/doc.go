// SPDX-License-Identifier: Apache-2.0

// Package converge proves that a reconciler converges under faults.
//
// A test of one reconcile does not show what happens between two of them: a crash after the second of three writes, a
// stale cache, a lost response to a request that took effect. This package runs a whole scenario – users, reconciler,
// API server, caches, garbage collector, other controllers – in memory and in virtual time, and repeats it for each
// fault at each injection point:
//
//	func TestWidgetConverges(t *testing.T) {
//		widget := &v1.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}, Spec: v1.WidgetSpec{Size: 1}}
//		converge.Run(t, converge.Scenario{
//			Scheme: scheme,
//			For:    &v1.Widget{},
//			Setup: func(mgr manager.Manager) error {
//				return (&controller.WidgetReconciler{Client: mgr.GetClient()}).SetupWithManager(mgr)
//			},
//			Steps: converge.Lifecycle(widget, func(w *v1.Widget) { w.Spec.Size = 2 }),
//		})
//	}
//
// [States] changes what users want instead of injecting faults: it compares the state after each sequence of specs with
// that of a new object.
//
// [Upgrade] lets a new version of a controller take over from an old one at any point, and the old one from the new
// one.
//
// [FromRecording] makes a scenario of what a running controller saw and did for an object.
//
// # How it works
//
// The first run has no faults. It is the reference: the state at each [Settle], the objects that were created and
// deleted, and all injection points, which are requests, watch events, and actions of other actors. Then each run
// injects one [Fault] at one point, for all points and all faults that apply there. Where a fault leads to new points,
// these get a second fault. Then some pairs of faults are tried, or all of them, and random schedules of more. Each run
// takes a fraction of a millisecond.
//
// Oracles check each run: do reconciles stop, is the state that of the run without faults or the one that
// [Scenario.Desired] requires, does another reconcile change nothing, is nothing created twice or left over; see
// [Oracle]. The first failure ends the search. It is shrunk to the fewest and simplest faults, shown as a timeline, and
// saved below testdata/converge. The next test run tries it first.
//
// Conflicts, missing objects and existing objects are not simulated responses: another client writes, deletes or
// creates the object. Faults are few and temporary, so that a reconciler that retries can succeed.
//
// # How the code is organized
//
// Packages below internal, of which each one imports only earlier ones:
//   - phrase has what messages have in common
//   - inject has the faults, the points where they apply, schedules of faults, and the order in which they are tried
//   - finding names the oracles, and the causes of what they find
//   - state compares states, in which it replaces generated names
//   - judge finds writers that keep each other busy, and objects that wait for each other to be deleted
//   - explain shows a failure: as a timeline, with the usual mistake, and as a page
//   - access has what roles allow, and what was used of it
//   - walk has the sequences of writes that [States] tries
//   - search has what all searches have in common, and adapts the Go runtime to them
//
// The scenario:
//   - scenario.go, step.go, actor*.go, filter.go, env.go, cloud.go, outside.go, crds.go, roles.go and state.go have
//     what users write
//   - plan.go and webhook.go validate it, and knowledge.go has what runs teach about it
//
// The search:
//   - converge.go has Run and the flags, and saved.go the saved failures
//   - explore.go chooses schedules
//   - execute.go executes a schedule, and reference.go has the runs without faults
//   - shrink.go simplifies a failure
//
// One run:
//   - run.go has its parts, and loop.go decides what happens next
//   - world.go has the API server, the external system and the clock
//   - scheduler.go knows what is due, and whether the controller is idle
//   - injector.go decides where which fault occurs
//   - users.go and settle.go perform the steps, and disturbances.go what users do besides
//   - actors.go is other controllers, and others.go and others_idle.go are the client that interferes
//   - webhooks.go calls webhooks for all writes, and versions.go converts custom objects between versions
//
// The process that is tested:
//   - program.go has what it runs, start.go and stale_start.go start it, with manager.go, and processes.go has the
//     processes of all programs
//   - queue.go and controller_queue.go have its requests
//   - process.go has its pending calls, which pass from client.go, or from rest.go if they are HTTP requests, to
//     gateway.go, which injects faults and sends them, and authorization.go, which checks the roles
//   - informer.go, cache.go and read.go are its caches, which process_informer.go and informer_store.go show as
//     client-go does, and watches.go forwards events to them
//
// The verdict:
//   - oracle_*.go have one oracle each, oracles.go calls them, and violation.go has the causes
//   - trace.go, timeline.go and facts.go record what happened
//   - report.go has the certificate and the failure
//
// Changes of specs:
//   - states.go has [States] and its report
//   - states_space.go has the specs of an object, which come from package internal/memapi/specs, and what the API server
//     accepts
//   - states_walk.go makes steps of a sequence of writes, which states_search.go, states_metadata.go and
//     states_faults.go choose
//   - states_compare.go compares a state with that of a new object, and states_refused.go finds out whether the
//     controller refuses a spec
//   - states_shrink.go simplifies a failure
//
// Recordings:
//   - recording.go has [FromRecording]; recording_history.go finds out what users did, and recording_faults.go what
//     failed
//   - recording_search.go repeats that, and tries similar schedules
//
// Versions:
//   - upgrade.go has [Upgrade], and which version a process runs
//   - upgrade_search.go chooses schedules with a change of the version
//   - upgrade_report.go has the certificate, and what an upgrade changes
//
// # What it proves
//
// If a scenario passes, the log has a certificate. For single faults it is complete: no single fault of this model, at
// any point of this scenario, leads the reconciler to another state. Where all single faults would take more than about
// a minute, a sample of them is tried, which the certificate says; the flag -converge.singles tries all. For several
// faults it counts the schedules that were tried, which proves nothing, but finds many bugs.
//
// # What it does not cover
//
// Package variables survive crashes, and deferred functions run at a crash; their requests have no effect. Goroutines
// of one reconcile run one at a time, in a fixed order. The only admission is the schema of custom resources and the
// webhooks of the manager. Permissions are checked only with [Scenario.Roles]. There is no clock skew, and there are no
// external systems except [Cloud] and those that [Env.Call] stands for. A reconciler must not wait for real time, for a
// lock that is held across a request, or for the network: a run happens in a bubble of testing/synctest, and a warning
// is printed if it gets stuck.
//
// # Flags
//
//	-converge.replay=v1:…  replay one schedule, and print its whole timeline; States replays a walk, w1:…, and Upgrade
//	                       a schedule with a direction, upgrade:v1:… or rollback:v1:…
//	-converge.budget=1m    try all single faults, and search for failures of several faults for this time
//	-converge.singles      try all single faults, even if that takes long
//	-converge.pairs        try all pairs of faults
//	-converge.random=1000  number of random schedules of up to six faults to try
//	-converge.seed=2       seed of the random choices
//	-converge.html=file    write a failure as a page for a browser
package converge
