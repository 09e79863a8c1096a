// SPDX-License-Identifier: Apache-2.0

package testing_test

import (
	"context"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
)

// BenchmarkSubReconcilerTestCases is how many cases an author can afford: each creates a child of a resource, with an
// event and a tracked reference, and has three given objects.
func BenchmarkSubReconcilerTestCases(b *testing.B) {
	const cases = 1000
	suite := make(rtesting.SubReconcilerTestSuite[*fixture.Resource], cases)
	for i := range suite {
		suite[i] = subCase{
			Name:         strconv.Itoa(i),
			Resource:     site("blog", ""),
			GivenObjects: []client.Object{page("home", "Hello"), page("about", "About")},
			ExpectTracks: []rtesting.TrackRequest{rtesting.NewTrackRequest(page("home", ""), site("blog", ""), scheme)},
			ExpectEvents: []rtesting.Event{
				rtesting.NewEvent(site("blog", ""), scheme, corev1.EventTypeNormal, "Created", "Created ConfigMap %q", "made"),
			},
			ExpectCreates: []client.Object{rtesting.With(page("made", "Hello"), func(c *corev1.ConfigMap) {
				c.OwnerReferences = []metav1.OwnerReference{
					*metav1.NewControllerRef(site("blog", ""), fixture.GroupVersion.WithKind("Resource")),
				}
			})},
		}
	}
	factory := func(_ *testing.T, _ *subCase, c reconcilers.Config) reconcilers.SubReconciler[*fixture.Resource] {
		return &reconcilers.ChildReconciler[*fixture.Resource, *corev1.ConfigMap, *corev1.ConfigMapList]{
			DesiredChild: func(ctx context.Context, _ *fixture.Resource) (*corev1.ConfigMap, error) {
				home := &corev1.ConfigMap{}
				err := c.TrackAndGet(ctx, client.ObjectKeyFromObject(page("home", "")), home)
				return page("made", home.Data["title"]), err
			},
			ChildObjectManager: &reconcilers.UpdatingObjectManager[*corev1.ConfigMap]{
				MergeBeforeUpdate: func(_, _ *corev1.ConfigMap) {},
			},
			ReflectChildStatusOnParent: func(context.Context, *fixture.Resource, *corev1.ConfigMap, error) {},
		}
	}
	for _, bm := range []struct {
		name string
		opts []rtesting.RunOption
	}{
		{name: "InOrder"},
		{name: "Parallel", opts: []rtesting.RunOption{rtesting.Parallel()}},
		{name: "Realistic", opts: []rtesting.RunOption{rtesting.Realistic()}},
	} {
		b.Run(bm.name, func(b *testing.B) {
			b.ReportAllocs()
			runs := 0
			inTest(b, func(t *testing.T) {
				for b.Loop() {
					runs += cases
					t.Run("suite", func(t *testing.T) { suite.Run(t, scheme, factory, bm.opts...) })
				}
			})
			b.ReportMetric(float64(runs)/b.Elapsed().Seconds(), "cases/s")
		})
	}
}

// inTest calls a function with a test, which fails the benchmark if it fails.
func inTest(b *testing.B, do func(t *testing.T)) {
	b.Helper()
	all := func(string, string) (bool, error) { return true, nil }
	if !testing.RunTests(all, []testing.InternalTest{{Name: b.Name(), F: do}}) {
		b.Fatal("the cases have failed")
	}
}
