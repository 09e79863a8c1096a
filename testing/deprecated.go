// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"trueup.dev/reconcilers"
)

// Former names. `go fix` replaces them, except for generic methods, which it does not support yet, and functions with
// another signature.

// AdmissionWebhookFactory returns the webhook to test.
//
// Deprecated: use [AdmissionWebhookFactoryWithContext].
type AdmissionWebhookFactory func(t *testing.T, wtc *AdmissionWebhookTestCase, c reconcilers.Config) *admission.Webhook

func (f AdmissionWebhookFactory) withContext(
	t *testing.T, _ context.Context, wtc *AdmissionWebhookTestCase, c reconcilers.Config,
) (*admission.Webhook, error) {
	t.Helper()
	requireFactory(t, f)
	return f(t, wtc, c), nil
}

// Run runs the case as part of t.
//
// Deprecated: use [AdmissionWebhookTestCase.RunWithContext].
func (tc *AdmissionWebhookTestCase) Run(
	t *testing.T, scheme *runtime.Scheme, factory AdmissionWebhookFactory, opts ...RunOption,
) {
	t.Helper()
	tc.RunWithContext(t, scheme, factory.withContext, opts...)
}

// Run runs the cases.
//
// Deprecated: use [AdmissionWebhookTests.RunWithContext].
func (wt AdmissionWebhookTests) Run(
	t *testing.T, scheme *runtime.Scheme, factory AdmissionWebhookFactory, opts ...RunOption,
) {
	t.Helper()
	wt.RunWithContext(t, scheme, factory.withContext, opts...)
}

// Run runs the cases.
//
// Deprecated: use [AdmissionWebhookTestSuite.RunWithContext].
func (ts AdmissionWebhookTestSuite) Run(
	t *testing.T, scheme *runtime.Scheme, factory AdmissionWebhookFactory, opts ...RunOption,
) {
	t.Helper()
	ts.RunWithContext(t, scheme, factory.withContext, opts...)
}

// Test runs the case.
//
// Deprecated: use [ReconcilerTestCase.Run].
//
//go:fix inline
func (tc *ReconcilerTestCase) Test(t *testing.T, scheme *runtime.Scheme, factory ReconcilerFactory) {
	tc.Run(t, scheme, factory)
}

// Test runs the cases.
//
// Deprecated: use [ReconcilerTests.Run].
//
//go:fix inline
func (rt ReconcilerTests) Test(t *testing.T, scheme *runtime.Scheme, factory ReconcilerFactory) {
	rt.Run(t, scheme, factory)
}

// Test runs the cases.
//
// Deprecated: use [ReconcilerTestSuite.Run].
//
//go:fix inline
func (ts ReconcilerTestSuite) Test(t *testing.T, scheme *runtime.Scheme, factory ReconcilerFactory) {
	ts.Run(t, scheme, factory)
}

// Test runs the case.
//
// Deprecated: use [SubReconcilerTestCase.Run].
func (tc *SubReconcilerTestCase[T]) Test(t *testing.T, scheme *runtime.Scheme, factory SubReconcilerFactory[T]) {
	t.Helper()
	tc.Run(t, scheme, factory)
}

// Test runs the cases.
//
// Deprecated: use [SubReconcilerTests.Run].
func (rt SubReconcilerTests[T]) Test(t *testing.T, scheme *runtime.Scheme, factory SubReconcilerFactory[T]) {
	t.Helper()
	rt.Run(t, scheme, factory)
}

// Test runs the cases.
//
// Deprecated: use [SubReconcilerTestSuite.Run].
func (ts SubReconcilerTestSuite[T]) Test(t *testing.T, scheme *runtime.Scheme, factory SubReconcilerFactory[T]) {
	t.Helper()
	ts.Run(t, scheme, factory)
}
