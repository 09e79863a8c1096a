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
// the state of a new object.
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
// Oracles check each run: do reconciles stop, is the state the same as in the run without faults or the one that
// [Scenario.Desired] requires, does another reconcile change nothing, is nothing created twice or left over; see
// [Oracle]. The first failure ends the search. It is shrunk to the fewest and simplest faults, shown as a timeline, and
// saved below testdata/converge. The next test run tries it first.
//
// Conflicts, missing objects and existing objects are not simulated responses: another client writes, deletes or
// creates the object. Faults are few and temporary, so that a reconciler that retries can succeed.
//
// # How the code is organized
//
// This package has what users write, and checks it: [Scenario] and its parts become a machine, which a run executes.
// [Run], [States], [Upgrade] and [FromRecording] start a search, execute what it tries, and describe what fails. All
// else is in packages below internal. Each one imports only earlier ones:
//   - phrase has what messages have in common
//   - inject has the faults, the points where they apply, schedules of faults, and the order in which they are tried
//   - finding names the oracles, and the causes of what they find
//   - state compares states, in which it replaces generated names
//   - past finds out from a recording what users did
//   - access has what roles allow, and what was used of it
//   - world is what is outside of the processes in a run, and the trace of what happens
//   - explain shows a failure: as a timeline, with the usual mistake, and as a page
//   - judge has the oracles, and the runs without faults that others are compared with
//   - sim executes a machine with a schedule: users, processes, caches, other controllers and faults
//   - walk has the sequences of writes that [States] tries
//   - search proposes what to try: schedules of faults, changes of the version, and walks; it shrinks what fails,
//     formats certificates, and adapts the Go runtime to searches
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
