// SPDX-License-Identifier: Apache-2.0

// Package testing tests reconcilers, sub reconcilers and admission webhooks with
// tables. Import it as rtesting:
//
//	import rtesting "trueup.dev/testing"
//
// A case says what is there before a reconciler is called, and what the
// reconciler should do about it. The kit calls it once, against an API in
// memory, and compares. A case runs in less than a millisecond.
//
// # A first case
//
// A reconciler that deletes secrets when they are a day old:
//
//	func TestExpiry(t *testing.T) {
//		rtesting.ReconcilerTests{
//			"old secrets are deleted": {
//				Request:       reconcilers.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "token"}},
//				Now:           secret.CreationTimestamp.Add(25 * time.Hour),
//				GivenObjects:  []client.Object{secret},
//				ExpectDeletes: []rtesting.DeleteRef{{Kind: "Secret", Namespace: "default", Name: "tokens"}},
//			},
//		}.Run(t, scheme, func(t *testing.T, tc *rtesting.ReconcilerTestCase, c reconcilers.Config) reconcile.Reconciler {
//			return expiryReconciler(c)
//		})
//	}
//
// The function at the end is the factory: it makes the reconciler for a case, and
// hands it the config that everything else hangs on. Clients, event recorders and
// the tracker of that config record what is done with them.
//
// What a case does not mention must not happen: without ExpectDeletes, a delete is a
// failure.
//
// # Reading a failure
//
// That case has a typing error. A failure names the expectation and the index in
// it, shows the difference, and then what was observed, as Go code. If that is what
// should happen, paste it over the field:
//
//	expiry_test.go:43: ExpectDeletes[0] differs (-expected, +actual):
//	      testing.DeleteRef{
//	      	Group:     "",
//	      	Kind:      "Secret",
//	      	Namespace: "default",
//	    - 	Name:      "tokens",
//	    + 	Name:      "token",
//	      }
//
//	    observed, as an expectation:
//	    ExpectDeletes: []rtesting.DeleteRef{
//	    	{Kind: "Secret", Namespace: "default", Name: "token"},
//	    },
//
// Set COLOR_DIFF in the environment to see differences in color. To work on some
// cases only, set Focus on them: all others are left out, and the suite fails until
// the last Focus is gone.
//
// # Objects
//
// Tables are about what differs from case to case. Have one object of each kind,
// and derive the others:
//
//	GivenObjects: []client.Object{
//		rtesting.With(quota, func(q *corev1.ResourceQuota) {
//			q.Spec.Hard[corev1.ResourcePods] = resource.MustParse("500")
//		}),
//	},
//
// Cases copy all objects before they use them.
//
// # Sub reconcilers
//
// [SubReconcilerTests] call one step of a reconciler, with the resource in hand.
// ExpectResource is what the step has made of it, ExpectStashedValues what it has
// left for the steps that follow. Test each step on its own, with its errors, and
// the root reconciler only for how the steps work together.
//
// # Webhooks
//
// [AdmissionWebhookTests] have a webhook answer a Request, and compare the
// response. Any admission.Webhook will do.
//
// # What goes wrong
//
// A reactor sees each call before it is made, and can change it, answer it or fail
// it. [InduceFailure] is the one to begin with:
//
//	WithReactors: []rtesting.ReactionFunc{
//		rtesting.InduceFailure("create", "ResourceQuota"),
//	},
//	ShouldErr: true,
//
// # More than data
//
// Now fixes the time that reconcilers see. Prepare runs before everything else, may
// change the case, and returns the context for all that follows; CleanUp runs at the
// end. Both, and the factory, find in Metadata what a case wants to tell them.
// AdditionalConfigs stand for further clusters, AdditionalReconciles call the same
// sub reconciler again.
//
// # What the API in memory does not do
//
// It is no API server: it takes what a server would refuse, has no defaults, and
// does not move generations. Three things help, from near to far:
//
//   - Realistic, a field of each case and an option for all, brings it closer, see
//     [ExpectConfig];
//   - ExpectWiring asserts what no call of a reconciler can show: which kinds it
//     watches, and which indexes it needs, see [Wiring];
//   - [OnCluster] runs the same table on a real API.
//
// # On its own
//
// [ExpectConfig] is what cases are made of: a config to hand to a function that
// takes one, and the assertions about what the function has done with it.
package testing
