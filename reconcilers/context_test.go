// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

func TestContext_Empty(t *testing.T) {
	const missing = "config must exist on the context. Check that the context is from a ResourceReconciler or WithConfig"
	const missingOriginal = "resource config must exist on the context. Check that the context is from a " +
		"ResourceReconciler"
	ctx := context.Background()
	equal(t, "request", reconcilers.Request{}, reconcilers.RetrieveRequest(ctx))
	if reconcilers.RetrieveResourceType(ctx) != nil || reconcilers.RetrieveOriginalResourceType(ctx) != nil {
		t.Error("an empty context has a resource type")
	}
	if configs := reconcilers.RetrieveAdditionalConfigs(ctx); configs == nil || len(configs) != 0 {
		t.Errorf("additional configs = %#v", configs)
	}
	_, err := reconcilers.RetrieveConfig(ctx)
	wantText(t, missing, err)
	_, err = reconcilers.RetrieveOriginalConfig(ctx)
	wantText(t, missingOriginal, err)

	for want, retrieve := range map[string]func(){
		missing:         func() { reconcilers.RetrieveConfigOrDie(ctx) },
		missingOriginal: func() { reconcilers.RetrieveOriginalConfigOrDie(ctx) },
	} {
		func() {
			defer func() {
				err, ok := recover().(error)
				if !ok || err.Error() != want {
					t.Errorf("panic with %v, want %s", err, want)
				}
			}()
			retrieve()
		}()
	}
}

func TestContext_Values(t *testing.T) {
	one, two := newWorld(t).Config, newWorld(t).Config
	resource, cast := &fixture.Resource{}, &corev1.Secret{}
	outer := reconcilers.StashRequest(context.Background(), testRequest)
	outer = reconcilers.StashConfig(outer, one)
	outer = reconcilers.StashOriginalConfig(outer, one)
	outer = reconcilers.StashResourceType(outer, resource)
	outer = reconcilers.StashOriginalResourceType(outer, resource)
	outer = reconcilers.StashAdditionalConfigs(outer, map[string]reconcilers.Config{"other": two})
	inner := reconcilers.StashConfig(outer, two)
	inner = reconcilers.StashResourceType(inner, cast)

	for name, tc := range map[string]struct {
		ctx              context.Context
		config, original reconcilers.Config
		current          client.Object
	}{
		"outer": {outer, one, one, resource},
		"inner": {inner, two, one, cast},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := reconcilers.RetrieveConfig(tc.ctx)
			original, oerr := reconcilers.RetrieveOriginalConfig(tc.ctx)
			if err := errors.Join(err, oerr); err != nil {
				t.Fatal(err)
			}
			if config != tc.config || original != tc.original {
				t.Error("a config is not the one that was stashed")
			}
			if reconcilers.RetrieveConfigOrDie(tc.ctx) != tc.config ||
				reconcilers.RetrieveOriginalConfigOrDie(tc.ctx) != tc.original {
				t.Error("a config is not the one that was stashed")
			}
			if got := reconcilers.RetrieveResourceType(tc.ctx); got != tc.current {
				t.Errorf("resource type is %T", got)
			}
			if got := reconcilers.RetrieveOriginalResourceType(tc.ctx); got != resource {
				t.Errorf("original resource type is %T", got)
			}
			equal(t, "request", testRequest, reconcilers.RetrieveRequest(tc.ctx))
			equal(t, "additional configs", 1, len(reconcilers.RetrieveAdditionalConfigs(tc.ctx)))
		})
	}
}
