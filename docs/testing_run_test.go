// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	bannerv1 "trueup.dev/docs/internal/banner/v1"
	"trueup.dev/reconcilers"
	"trueup.dev/sandbox"
	rtesting "trueup.dev/testing"
)

// region testing-step
// Step creates a step for each case. It ignores the config: steps retrieve it from the context.
func Step(step func() reconcilers.SubReconciler[*bannerv1.Banner]) rtesting.SubReconcilerFactory[*bannerv1.Banner] {
	return func(
		*testing.T, *rtesting.SubReconcilerTestCase[*bannerv1.Banner], reconcilers.Config,
	) reconcilers.SubReconciler[*bannerv1.Banner] {
		return step()
	}
}

// endregion

// region testing-parallel
func TestBanner(t *testing.T) {
	testBanner(t, rtesting.Parallel())
}

func testBanner(t *testing.T, options ...rtesting.RunOption) {
	t.Helper()
	BannerCases.Run(t, scheme, func(
		_ *testing.T, _ *rtesting.ReconcilerTestCase, c reconcilers.Config,
	) reconcile.Reconciler {
		return BannerReconciler(c)
	}, options...)
	TextCases.Run(t, scheme, Step(TextReconciler), options...)
	WiringCases.Run(t, scheme, Step(TextReconciler), options...)
	LapseCases.Run(t, scheme, Step(LapseReconciler), options...)
	PageCases.Run(t, scheme, Step(PageReconciler), options...)
}

// endregion

// region testing-realistic
func TestBannerRealistic(t *testing.T) {
	testBanner(t, rtesting.Parallel(), rtesting.Realistic())
}

// endregion

// region testing-on-cluster
func TestBannerOnCluster(t *testing.T) {
	env := sandbox.ForTest(t, sandbox.TestOptions{CRDs: []any{bannerv1.CRDs}})
	testBanner(t, rtesting.OnCluster(env.RESTConfig()))
}

// endregion
