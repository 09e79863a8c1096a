// SPDX-License-Identifier: Apache-2.0

//nolint:staticcheck,govet // tests the deprecated names
package generations

import (
	"context"
	"testing"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
)

// The documented tests of v0.6 to v0.11: cases by name, with a Request or a Resource; webhooks and configs are tested
// separately.

func TestV11_ReconcilerTests(t *testing.T) {
	createsImage := createsImage()
	createsImage.Request = reconcilers.Request{NamespacedName: testKey}

	rts := rtesting.ReconcilerTests{
		"creates image": createsImage,
		"no longer exists": {
			Request: reconcilers.Request{NamespacedName: testKey},
		},
	}

	rts.Test(t, testScheme, func(_ *testing.T, _ *rtesting.ReconcilerTestCase, c reconcilers.Config) reconcile.Reconciler {
		return trackingFunctionReconciler(c, "system")
	})
}

func TestV11_SubReconcilerTests(t *testing.T) {
	rts := rtesting.SubReconcilerTests[*Function]{
		"missing images configmap": {
			Resource: function.DieReleasePtr(),
			ExpectTracks: []rtesting.TrackRequest{
				rtesting.NewTrackRequest(imagesConfigMap, function, testScheme),
			},
			ShouldErr: true,
		},
		"stash images": {
			Resource: function.DieReleasePtr(),
			GivenObjects: []client.Object{
				imagesConfigMap,
			},
			ExpectTracks: []rtesting.TrackRequest{
				rtesting.NewTrackRequest(imagesConfigMap, function, testScheme),
			},
			ExpectStashedValues: map[reconcilers.StashKey]interface{}{
				imagesStashKey: imagesConfigMap.Data,
			},
		},
	}

	rts.Test(
		t,
		testScheme,
		func(
			*testing.T, *rtesting.SubReconcilerTestCase[*Function], reconcilers.Config,
		) reconcilers.SubReconciler[*Function] {
			return trackImages("system")
		},
	)
}

func TestV11_AdmissionWebhookTests(t *testing.T) {
	binding := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db"},
		Data:       map[string]string{"root": "/bindings"},
	}
	request := admissionv1.AdmissionRequest{
		Kind:      metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
		Resource:  metav1.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
		UID:       "r-1",
		Operation: admissionv1.Create,
		Namespace: "default",
		Name:      "shop",
		Object: runtime.RawExtension{Raw: []byte(`{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "default", "name": "shop"},
			"spec": {"template": {"spec": {"containers": [{"name": "web"}]}}}
		}`)},
	}

	wts := rtesting.AdmissionWebhookTests{
		"project binding": {
			GivenObjects: []client.Object{
				binding,
			},
			Request: &admission.Request{
				AdmissionRequest: request,
			},
			ExpectedResponse: admission.Response{
				AdmissionResponse: admissionv1.AdmissionResponse{Allowed: true},
				Patches: []jsonpatch.Operation{
					{
						Operation: "add",
						Path:      "/spec/template/spec/containers/0/env",
						Value: []interface{}{
							map[string]interface{}{
								"name":  "SERVICE_BINDING_ROOT",
								"value": "/bindings",
							},
						},
					},
				},
			},
		},
		"nothing to project": {
			Request: &admission.Request{
				AdmissionRequest: request,
			},
			ExpectedResponse: admission.Response{
				AdmissionResponse: admissionv1.AdmissionResponse{Allowed: true},
			},
		},
	}

	wts.Run(
		t,
		testScheme,
		func(_ *testing.T, _ *rtesting.AdmissionWebhookTestCase, c reconcilers.Config) *admission.Webhook {
			return admissionProjectorWebhook(c).Build()
		},
	)
}

// The config for a function under test has given objects and expectations.
func TestV11_ExpectConfig(t *testing.T) {
	config := &rtesting.ExpectConfig{
		Name:   "this",
		Scheme: testScheme,
		GivenObjects: []client.Object{
			imagesConfigMap,
		},
		ExpectTracks: []rtesting.TrackRequest{
			rtesting.NewTrackRequest(imagesConfigMap, function, testScheme),
		},
		ExpectDeletes: []rtesting.DeleteRef{
			rtesting.NewDeleteRefFromObject(imagesConfigMap, testScheme),
		},
	}
	c := config.Config()
	ctx := reconcilers.StashRequest(t.Context(), reconcilers.Request{NamespacedName: testKey})

	images := &corev1.ConfigMap{}
	if err := c.TrackAndGet(ctx, client.ObjectKeyFromObject(imagesConfigMap), images); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(ctx, images); err != nil {
		t.Fatal(err)
	}
	config.AssertExpectations(t)
}

// Additional configs are available to reconcilers that use several clusters.
func TestV11_AdditionalConfigs(t *testing.T) {
	resolved := function.StatusDie(func(status *FunctionStatus) { status.TargetImage = imageCreate.Spec.Tag })
	rts := rtesting.SubReconcilerTests[*Function]{
		"creates images elsewhere": {
			Resource: resolved.DieReleasePtr(),
			AdditionalConfigs: map[string]rtesting.ExpectConfig{
				"builds": {
					Scheme: testScheme,
					ExpectCreates: []client.Object{
						imageCreate,
					},
				},
			},
			ExpectEvents: []rtesting.Event{
				rtesting.NewEvent(
					function, testScheme, corev1.EventTypeNormal, "Created", `Created Image "%s"`, "square-function-001",
				),
			},
			ExpectResource: resolved.
				StatusDie(func(status *FunctionStatus) {
					status.KpackImageRef = "square-function-001"
					status.PropagateImageStatus("")
				}).DieReleasePtr(),
		},
	}

	rts.Test(
		t,
		testScheme,
		func(
			*testing.T, *rtesting.SubReconcilerTestCase[*Function], reconcilers.Config,
		) reconcilers.SubReconciler[*Function] {
			return &reconcilers.WithConfig[*Function]{
				Config: func(ctx context.Context, _ reconcilers.Config) (reconcilers.Config, error) {
					return reconcilers.RetrieveAdditionalConfigs(ctx)["builds"], nil
				},
				Reconciler: parentChildImageReconciler(),
			}
		},
	)
}
