// SPDX-License-Identifier: Apache-2.0

package testing_test

import (
	"context"
	"testing"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
)

// teamWebhook copies the team of a namespace to what is created in it.
func teamWebhook(c reconcilers.Config) *reconcilers.AdmissionWebhookAdapter[*corev1.ConfigMap] {
	return &reconcilers.AdmissionWebhookAdapter[*corev1.ConfigMap]{
		Reconciler: &reconcilers.SyncReconciler[*corev1.ConfigMap]{
			Sync: func(ctx context.Context, configMap *corev1.ConfigMap) error {
				namespace := &corev1.Namespace{}
				if err := c.Get(ctx, types.NamespacedName{Name: configMap.Namespace}, namespace); err != nil {
					return err
				}
				configMap.Labels = reconcilers.MergeMaps(configMap.Labels, map[string]string{"team": namespace.Labels["team"]})
				return nil
			},
		},
		Config: c,
	}
}

// testTeams would be named TestTeams if it were not an example.
func testTeams(t *testing.T) {
	request := &admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID:       "8f3c",
		Operation: admissionv1.Create,
		Object: runtime.RawExtension{
			Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"settings"}}`),
		},
	}}

	rtesting.AdmissionWebhookTests{
		"a namespace of a team": {
			Request: request,
			GivenObjects: []client.Object{
				&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: map[string]string{"team": "a"}}},
			},
			ExpectedResponse: admission.Response{
				AdmissionResponse: admissionv1.AdmissionResponse{Allowed: true},
				Patches: []jsonpatch.Operation{
					jsonpatch.NewOperation("add", "/metadata/labels", map[string]any{"team": "a"}),
				},
			},
		},
		"an unknown namespace": {
			Request: request,
			ExpectedResponse: admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{
				Result: &metav1.Status{Code: 500, Message: `namespaces "default" not found`},
			}},
		},
	}.RunWithContext(t, clientgoscheme.Scheme, func(
		_ *testing.T, ctx context.Context, _ *rtesting.AdmissionWebhookTestCase, c reconcilers.Config,
	) (*admission.Webhook, error) {
		return teamWebhook(c).BuildWithContext(ctx)
	})
}

func ExampleAdmissionWebhookTests() {
	var t *testing.T // of your own test function
	testTeams(t)
}
