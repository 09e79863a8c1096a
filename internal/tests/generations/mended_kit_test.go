// SPDX-License-Identifier: Apache-2.0

package generations

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clientgotesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
)

// What replaces names of the test kit that are gone, as the guides have it.

// A factory made objects, and a wrapper created them. Cases take plain objects.
func TestV05_Factories(t *testing.T) {
	base := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}}
	blue := rtesting.With(base, func(c *corev1.ConfigMap) { c.Data = map[string]string{"color": "blue"} })
	equal(t, "the base", 0, len(base.Data))
	equal(t, "the copy", map[string]string{"color": "blue"}, blue.Data)
}

func TestV05_TestLogger(t *testing.T) {
	ctx := logr.NewContext(t.Context(), testr.New(t)) // was rtesting.TestLogger(t)
	equal(t, "enabled", true, logr.FromContextOrDiscard(ctx).Enabled())

	// The cases log to t themselves.
	enabled := false
	rtesting.SubReconcilerTests[*Function]{
		"logs": {Resource: newFunction()},
	}.Run(t, testScheme, func(
		*testing.T, *rtesting.SubReconcilerTestCase[*Function], reconcilers.Config,
	) reconcilers.SubReconciler[*Function] {
		return &reconcilers.SyncReconciler[*Function]{Sync: func(ctx context.Context, _ *Function) error {
			enabled = logr.FromContextOrDiscard(ctx).Enabled()
			return nil
		}}
	})
	equal(t, "enabled in a case", true, enabled)
}

func TestV11_DeletedObjectsNeedAFinalizer(t *testing.T) {
	deleted := metav1.NewTime(time.Unix(1, 0))
	for name, finalizers := range map[string][]string{"without": nil, "with": {"functions.example.com/records"}} {
		t.Run(name, func(t *testing.T) {
			function := newFunction()
			function.DeletionTimestamp, function.Finalizers = &deleted, finalizers
			defer func() {
				if refused := recover() != nil; refused != (finalizers == nil) {
					t.Errorf("refused: %t, want %t", refused, finalizers == nil)
				}
			}()
			_ = (&rtesting.ExpectConfig{Scheme: testScheme, GivenObjects: []client.Object{function}}).Config()
		})
	}
}

func TestV19_WebhookWithContext(t *testing.T) {
	rtesting.AdmissionWebhookTests{
		"nothing to project": {
			Request: &admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				UID: "r-1", Operation: admissionv1.Create, Object: runtime.RawExtension{
					Raw: []byte(`{"apiVersion": "v1", "kind": "Pod"}`),
				},
			}},
			ExpectedResponse: admission.Response{
				AdmissionResponse: admissionv1.AdmissionResponse{Allowed: true},
			},
		},
	}.RunWithContext(t, testScheme,
		func(
			_ *testing.T, ctx context.Context, _ *rtesting.AdmissionWebhookTestCase, c reconcilers.Config,
		) (*admission.Webhook, error) {
			return admissionProjectorWebhook(c).BuildWithContext(ctx)
		})
}

func TestV19_IgnoreAllUnexported(t *testing.T) {
	one, same := resource.MustParse("1"), resource.MustParse("1")
	// caches the text in an unexported field
	_ = one.String()
	equal(t, "difference", "", cmp.Diff(one, same, reconcilers.IgnoreAllUnexported)) // was rtesting.SafeDeployDiff
}

func TestV19_NewFakeClientWrapper(t *testing.T) {
	objects := clientgotesting.NewObjectTracker(testScheme, clientgoscheme.Codecs.UniversalDecoder())
	c := rtesting.NewFakeClientWrapper(
		fake.NewClientBuilder().WithScheme(testScheme).WithObjectTracker(objects).Build(), objects,
	)
	if err := c.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"},
	}); err != nil {
		t.Fatal(err)
	}
	equal(t, "creates", 1, len(c.CreateActions))
}
