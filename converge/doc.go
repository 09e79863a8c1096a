// SPDX-License-Identifier: Apache-2.0

// Package converge proves that a reconciler converges, whatever fails.
//
// A test of one reconcile tells nothing about what happens between two of them: a crash after the second of three
// writes, a cache that is behind, an answer that gets lost although the request had its effect. This package runs a
// whole scenario – users, reconciler, API server, caches, garbage collector, other controllers – in memory, in virtual
// time, and again for each thing that can go wrong at each point of it:
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
// # What happens
//
// First the scenario is run without faults. That is the reference: the state after each [Settle], what was created and
// deleted, and every point at which something could have gone wrong, which is each request, each event of a watch, each
// step of another actor. Then it is run again with one [Fault] at one point, for all points and all faults that are
// possible there. Where a fault leads to points that were not there before, those get a second fault. Then some pairs
// of faults are tried, or all of them, and random schedules of more. Each run takes a fraction of a millisecond.
//
// After each run the oracles look: does all get quiet, is the state the one without faults, or the one that
// [Scenario.Desired] wants, does reconciling again change nothing, was nothing created twice, is nothing left over, and
// so on; see [Oracle]. The first failure ends the search. It is shrunk to the fewest and simplest faults, told as a
// timeline, and saved below testdata/converge, from where it is tried first next time.
//
// Conflicts, and objects that exist or do not exist, are never made up: somebody else really writes, creates or
// deletes. Faults are few, and after them all goes well, so that a reconciler that never gives up has its chance.
//
// # What it proves
//
// If a scenario passes, the log has a certificate. For single faults it is complete: no single fault of this model, at
// any point of this scenario, has the reconciler end up elsewhere. For several faults at once it tells how many were
// tried, which proves nothing, and finds a lot.
//
// # What it cannot see
//
// Variables of packages outlive crashes, and deferred functions run in one, as they do at the end of a goroutine; what
// they ask of the API server has no effect. Goroutines of one reconcile run one at a time, in a fixed order. There are
// no admission webhooks but those in a custom resource's schema, no quotas, no permissions, no clocks that differ, and
// no systems outside of the cluster but [Cloud] and those that [Env.Call] stands for. A reconciler that waits for real
// time, for a lock that is held across a request, or for the network, does not fit in: the bubble of testing/synctest
// in which a run happens tells so.
//
// # Flags
//
//	-converge.replay=v1:…  make one run, and show all of its timeline
//	-converge.budget=1m    look for failures of several faults for so long
//	-converge.pairs        try all pairs of faults
//	-converge.random=1000  try so many random schedules of up to six faults
//	-converge.seed=2       choose others by chance
//	-converge.html=file    write a failure as a page to look at in a browser
package converge
