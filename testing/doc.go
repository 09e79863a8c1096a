// SPDX-License-Identifier: Apache-2.0

// Package testing tests reconcilers, subreconcilers and admission webhooks with
// tables. Import it as rtesting:
//
//	import rtesting "trueup.dev/testing"
//
// A case has the objects that exist before a reconciler is called, and the calls
// that the reconciler should make. The kit calls the reconciler once, with an API in
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
// The function at the end is the factory: it returns the reconciler for a case, which
// must use the given config. The clients, event recorders and the tracker of that
// config record all calls.
//
// A call that a case does not expect is a failure: without ExpectDeletes, the
// reconciler must not delete.
//
// # Reading a failure
//
// The case above has a typo. A failure names the expectation and the index in
// it, and shows the difference and the observed calls as Go code. If the observed
// calls are correct, paste them over the field:
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
// cases only, set Focus on them: all others are skipped, and the suite fails until no
// case has a Focus.
//
// # Objects
//
// A table shows the differences between cases. Declare one object of each kind, and
// derive the others:
//
//	GivenObjects: []client.Object{
//		rtesting.With(quota, func(q *corev1.ResourceQuota) {
//			q.Spec.Hard[corev1.ResourcePods] = resource.MustParse("500")
//		}),
//	},
//
// Cases copy all objects before they use them.
//
// # Subreconcilers
//
// [SubReconcilerTests] call one step of a reconciler with a resource.
// ExpectResource is the resource after the step, and ExpectStashedValues are the
// values for later steps. Test each step on its own, with its errors, and in tests of
// the root reconciler only that the steps work together.
//
// # Webhooks
//
// [AdmissionWebhookTests] send a Request to a webhook and compare the response. They
// work with any admission.Webhook.
//
// # Failures
//
// A reactor receives each call before it is executed, and can change it, answer it or
// fail it. Begin with [InduceFailure]:
//
//	WithReactors: []rtesting.ReactionFunc{
//		rtesting.InduceFailure("create", "ResourceQuota"),
//	},
//	ShouldErr: true,
//
// # Hooks
//
// Now fixes the time for reconcilers. Prepare runs first, may change the case, and
// returns the context of the run; CleanUp runs last. Metadata has values for both and
// for the factory. AdditionalConfigs stand for further clusters, and
// AdditionalReconciles call the same subreconciler again.
//
// # Limits of the API in memory
//
// The API in memory accepts objects that a server refuses, sets no defaults, and does
// not increment generations. Three features help:
//
//   - Realistic, a field of each case and an option for all, brings the API closer to
//     a server, see [ExpectConfig];
//   - ExpectWiring asserts what a call of a reconciler cannot show: which kinds it
//     watches, and which indexes it needs, see [Wiring];
//   - [OnCluster] runs the same table on a real API.
//
// # Functions that take a config
//
// Each case uses an [ExpectConfig]: a config to pass to a function, with assertions
// about the calls of that function. Use it directly in other tests.
package testing
