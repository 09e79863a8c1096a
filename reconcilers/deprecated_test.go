// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

func TestDeprecatedNames(t *testing.T) {
	if _, ok := any(&reconcilers.ParentReconciler[*fixture.Resource]{}).(*resourceReconciler); !ok {
		t.Error("ParentReconciler is a different type")
	}
	if _, ok := any(&reconcilers.ResourceManager[*corev1.ConfigMap]{}).(*configMaps); !ok {
		t.Error("ResourceManager is a different type")
	}
	if !errors.Is(reconcilers.HaltSubReconcilers, reconcilers.ErrHaltSubReconcilers) {
		t.Error("HaltSubReconcilers is a different error")
	}
	config := newWorld(t).Config
	resource, cast := &fixture.Resource{}, &corev1.Secret{}
	ctx := reconcilers.StashParentConfig(context.Background(), config)
	ctx = reconcilers.StashParentType(ctx, resource)
	ctx = reconcilers.StashCastParentType(ctx, cast)
	parentConfig, err := reconcilers.RetrieveParentConfig(ctx)
	if err != nil || parentConfig != config || reconcilers.RetrieveParentConfigOrDie(ctx) != config ||
		reconcilers.RetrieveOriginalConfigOrDie(ctx) != config {
		t.Error("the parent's config is not the original config")
	}
	if reconcilers.RetrieveParentType(ctx) != resource || reconcilers.RetrieveOriginalResourceType(ctx) != resource {
		t.Error("the parent's type is not the original type")
	}
	if reconcilers.RetrieveCastParentType(ctx) != cast || reconcilers.RetrieveResourceType(ctx) != cast {
		t.Error("the parent's cast type is not the current type")
	}

	w := newWorld(t, newResource())
	resource = newResource()
	wantErr(t, nil, reconcilers.AddParentFinalizer(w.Context(), resource, "test-finalizer"))
	equal(t, "finalizers", []string{"test-finalizer"}, resource.Finalizers)
	wantErr(t, nil, reconcilers.ClearParentFinalizer(w.Context(), resource, "test-finalizer"))
	equal(t, "finalizers", nil, resource.Finalizers)
}
