// SPDX-License-Identifier: Apache-2.0

package testing_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
)

// A resource comes as it is stored, which is how a root reconciler has read it. The table need not say how that is.
func TestSubReconcilerTestCaseRealistic(t *testing.T) {
	finalizer := func(r *fixture.Resource) {
		r.Finalizers = []string{"example.com/f"}
		r.ResourceVersion = "1000"
	}
	tc := &subCase{
		Resource:               site("blog", ""),
		ExpectResource:         rtesting.With(site("blog", ""), finalizer),
		StatusSubResourceTypes: []client.Object{&fixture.Resource{}},
		ExpectEvents: []rtesting.Event{
			siteEvent(corev1.EventTypeNormal, "FinalizerPatched", `Patched finalizer "example.com/f"`),
		},
		ExpectPatches: []rtesting.PatchRef{{
			Group: "fixture.trueup.dev", Kind: "Resource", Namespace: "default", Name: "blog", PatchType: types.MergePatchType,
			Patch: []byte(`{"metadata":{"finalizers":["example.com/f"],"resourceVersion":"999"}}`),
		}},
	}
	tc.Run(t, scheme, syncing(func(ctx context.Context, r *fixture.Resource) error {
		if r.Generation != 1 || r.CreationTimestamp.IsZero() {
			t.Errorf(
				"generation is %d and creation timestamp %s, want those of the stored resource", r.Generation, r.CreationTimestamp,
			)
		}
		return reconcilers.AddFinalizer(ctx, r, "example.com/f")
	}), rtesting.Realistic())
}
