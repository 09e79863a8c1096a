// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/examples/website/dns"
	"trueup.dev/examples/website/internal/controller"
	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
)

// The steps have their own cases. These cases are about the whole controller.
func TestWebsiteReconciler(t *testing.T) {
	request := reconcilers.Request{NamespacedName: client.ObjectKeyFromObject(shop)}
	initialized := func(site *websitev1.Website) { site.Status.InitializeConditions(t.Context()) }
	observed := func(site *websitev1.Website) { site.Status.ObservedGeneration = site.Generation }
	rendered := condition(websitev1.ConditionContentReady, metav1.ConditionTrue, "Rendered", "")
	rollingOut := condition(
		websitev1.ConditionDeploymentReady, metav1.ConditionUnknown, "RollingOut",
		"waiting for web servers with the current content",
	)
	rolledOut := condition(websitev1.ConditionDeploymentReady, metav1.ConditionTrue, "RolledOut", "")
	assigned := condition(websitev1.ConditionServiceReady, metav1.ConditionTrue, "AddressAssigned", "")
	inRecords := condition(websitev1.ConditionRecordReady, metav1.ConditionTrue, "Published", "")
	at := func(site *websitev1.Website) { site.Status.URL = "http://shop.example.com" }
	settled := rtesting.With(deployment, func(d *appsv1.Deployment) {
		d.Generation = 1
		d.Status = appsv1.DeploymentStatus{
			ObservedGeneration: 1, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2, ReadyReplicas: 2,
		}
	})
	ready := rtesting.With(shop, finalizer, initialized, observed, rendered, rolledOut, assigned, inRecords, at,
		func(site *websitev1.Website) { site.Status.ReadyReplicas = 2 })
	event := func(kind, reason, message string) rtesting.Event {
		return rtesting.NewEvent(shop, scheme(), kind, reason, "%s", message)
	}
	patchOfFinalizers := func(finalizers string) []rtesting.PatchRef {
		return []rtesting.PatchRef{{
			Group: "demo.trueup.dev", Kind: "Website", Namespace: "cases", Name: "shop", PatchType: types.MergePatchType,
			Patch: []byte(`{"metadata":{"finalizers":` + finalizers + `,"resourceVersion":"999"}}`),
		}}
	}

	cases := rtesting.ReconcilerTests{
		"a site that does not exist": {Request: request},
		"the first reconcile creates everything": {
			Request:                request,
			StatusSubResourceTypes: statusKinds,
			GivenObjects:           []client.Object{shop},
			WithReactors:           []rtesting.ReactionFunc{assignAddress},
			ExpectCreates:          []client.Object{content, deployment, service},
			ExpectPatches:          patchOfFinalizers(`["demo.trueup.dev/dns-record"]`),
			ExpectStatusUpdates: []client.Object{
				rtesting.With(shop, finalizer, initialized, observed, rendered, rollingOut, assigned, inRecords, at),
			},
			ExpectEvents: []rtesting.Event{
				created(content, "ConfigMap"), created(deployment, "Deployment"), created(service, "Service"),
				event(corev1.EventTypeNormal, "FinalizerPatched", `Patched finalizer "demo.trueup.dev/dns-record"`),
				event(corev1.EventTypeNormal, "StatusUpdated", "Updated status"),
			},
		},
		"a ready site is not changed": {
			Request:                request,
			StatusSubResourceTypes: statusKinds,
			GivenObjects:           []client.Object{ready, content, settled, addressed},
			ExpectedResult:         reconcilers.Result{RequeueAfter: recheck},
		},
		"the content stays while the theme does not exist": {
			Request:                request,
			StatusSubResourceTypes: statusKinds,
			GivenObjects: []client.Object{content, settled, addressed, rtesting.With(ready, func(site *websitev1.Website) {
				site.Spec.ThemeRef = &websitev1.ThemeReference{Name: "paper"}
			})},
			ExpectTracks: []rtesting.TrackRequest{
				rtesting.CreateTrackRequest("", "ConfigMap", "cases", "paper").By("cases", "shop"),
			},
			ExpectStatusUpdates: []client.Object{rtesting.With(ready,
				condition(
					websitev1.ConditionContentReady, metav1.ConditionFalse, "ThemeNotFound", `ConfigMap "paper" does not exist`,
				))},
			ExpectEvents: []rtesting.Event{event(corev1.EventTypeNormal, "StatusUpdated", "Updated status")},
		},
		"a deleted site is cleaned up, also without its theme": {
			Request:                request,
			StatusSubResourceTypes: statusKinds,
			GivenObjects: []client.Object{rtesting.With(leavingShop, func(site *websitev1.Website) {
				site.Spec.ThemeRef = &websitev1.ThemeReference{Name: "paper"}
				site.Spec.Languages = []websitev1.Language{{Code: "de"}}
			})},
			ExpectPatches: patchOfFinalizers("null"),
			ExpectEvents: []rtesting.Event{
				event(corev1.EventTypeNormal, "FinalizerPatched", `Patched finalizer "demo.trueup.dev/dns-record"`),
			},
		},
		"its watches": {
			Request: request,
			ExpectWiring: &rtesting.Wiring{
				Controller: "Website",
				For:        []rtesting.Watch{{Object: &websitev1.Website{}}},
				Owns: []rtesting.Watch{
					{Object: &corev1.ConfigMap{}}, {Object: &appsv1.Deployment{}}, {Object: &corev1.Service{}},
				},
				Tracks: []rtesting.Watch{
					{Object: &corev1.ConfigMap{}}, {Object: &appsv1.Deployment{}}, {Object: &corev1.Service{}},
				},
			},
		},
	}
	for name, tc := range cases {
		tc.Now = now
		cases[name] = tc
	}
	onBoth(t, func(t *testing.T, options ...rtesting.RunOption) {
		cases.Run(t, scheme(), func(t *testing.T, _ *rtesting.ReconcilerTestCase, c reconcilers.Config) reconcile.Reconciler {
			return controller.NewWebsiteReconciler(c, dns.NewDirectory(t.TempDir()), recheck)
		}, options...)
	})
}
