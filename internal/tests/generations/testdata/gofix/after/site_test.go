// SPDX-License-Identifier: Apache-2.0

package site

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
)

func root(_ *testing.T, _ *rtesting.ReconcilerTestCase, c reconcilers.Config) reconcile.Reconciler {
	return Reconciler(c)
}

func step(
	*testing.T,
	*rtesting.SubReconcilerTestCase[*corev1.Secret],
	reconcilers.Config,
) reconcilers.SubReconciler[*corev1.Secret] {
	return reconcilers.Sequence[*corev1.Secret]{}
}

func TestReconcilers(t *testing.T) {
	scheme := runtime.NewScheme()
	reconcilerTests := rtesting.ReconcilerTests{}
	reconcilerTests.Run(t, scheme, root)
	reconcilerTestSuite := rtesting.ReconcilerTestSuite{}
	reconcilerTestSuite.Run(t, scheme, root)
	reconcilerTestCase := &rtesting.ReconcilerTestCase{}
	reconcilerTestCase.Run(t, scheme, root)

	subReconcilerTests := rtesting.SubReconcilerTests[*corev1.Secret]{}
	subReconcilerTests.Test(t, scheme, step)
	subReconcilerTestSuite := rtesting.SubReconcilerTestSuite[*corev1.Secret]{}
	subReconcilerTestSuite.Test(t, scheme, step)
	subReconcilerTestCase := &rtesting.SubReconcilerTestCase[*corev1.Secret]{}
	subReconcilerTestCase.Test(t, scheme, step)
}

func TestWebhooks(t *testing.T) {
	scheme := runtime.NewScheme()
	var factory rtesting.AdmissionWebhookFactory = func(
		*testing.T, *rtesting.AdmissionWebhookTestCase, reconcilers.Config,
	) *admission.Webhook {
		return &admission.Webhook{}
	}
	admissionWebhookTests := rtesting.AdmissionWebhookTests{}
	admissionWebhookTests.Run(t, scheme, factory)
	admissionWebhookTestSuite := rtesting.AdmissionWebhookTestSuite{}
	admissionWebhookTestSuite.Run(t, scheme, factory)
	admissionWebhookTestCase := &rtesting.AdmissionWebhookTestCase{}
	admissionWebhookTestCase.Run(t, scheme, factory)
}
