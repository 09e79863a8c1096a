// SPDX-License-Identifier: Apache-2.0

package convergence

import (
	"context"
	"errors"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"trueup.dev/converge"
	"trueup.dev/external"
	"trueup.dev/internal/fixture"
	"trueup.dev/reconcilers"
)

// bucket is an external resource whose name the cloud generates, so that a second creation makes a second one.
func bucket(cloud converge.Cloud, policy external.DeletionPolicy) sub {
	type found = string
	get := func(ctx context.Context, key string) (found, bool, error) {
		value, err := cloud.Get(ctx, key)
		if errors.Is(err, converge.ErrAbsent) {
			return "", false, nil
		}
		return value, err == nil, err
	}
	return &external.Resource[*fixture.Resource, found]{
		Name: "Bucket", Finalizer: finalizer,
		ID: func(r *fixture.Resource) string { return r.Status.Fields["bucket"] },
		SetID: func(r *fixture.Resource, id string) {
			if r.Status.Fields == nil {
				r.Status.Fields = map[string]string{}
			}
			r.Status.Fields["bucket"] = id
		},
		Find: func(ctx context.Context, _ *fixture.Resource, token string) (string, found, bool, error) {
			keys, err := cloud.List(ctx, token+"-")
			if err != nil || len(keys) == 0 {
				return "", "", false, err
			}
			value, ok, err := get(ctx, keys[0])
			return keys[0], value, ok, err
		},
		Observe: func(ctx context.Context, _ *fixture.Resource, id string) (found, bool, error) { return get(ctx, id) },
		Create: func(ctx context.Context, r *fixture.Resource, token string) (string, found, error) {
			value := r.Spec.Fields["value"]
			key, err := cloud.CreateNamed(ctx, token+"-", value)
			return key, value, err
		},
		InSync: func(_ context.Context, r *fixture.Resource, value found) bool { return value == r.Spec.Fields["value"] },
		Update: func(ctx context.Context, r *fixture.Resource, id string, _ found) (found, error) {
			return r.Spec.Fields["value"], cloud.Put(ctx, id, r.Spec.Fields["value"])
		},
		Delete: func(ctx context.Context, _ *fixture.Resource, id string) error {
			if err := cloud.Delete(ctx, id); !errors.Is(err, converge.ErrAbsent) {
				return err
			}
			return nil
		},
		DeletionPolicy: func(*fixture.Resource) external.DeletionPolicy { return policy },
		Reflect:        func(_ context.Context, r *fixture.Resource, value found) { r.Status.Fields["value"] = value },
	}
}

// TestExternal proves that exactly one external resource exists, and none after the deletion, whatever fails.
func TestExternal(t *testing.T) {
	for name, allowStale := range map[string]bool{"guard": false, "stale reads": true} {
		t.Run(name, func(t *testing.T) {
			prove(t, converge.Scenario{
				Scheme: scheme, For: &fixture.Resource{},
				Setup: func(mgr ctrl.Manager) error {
					config := reconcilers.NewConfig(mgr, nil, time.Hour)
					config.AllowStaleReads = allowStale
					root := &reconcilers.ResourceReconciler[*fixture.Resource]{
						Config: config, Reconciler: bucket(converge.EnvOf(mgr).Cloud, external.Delete),
					}
					return root.SetupWithManager(t.Context(), mgr)
				},
				Steps: converge.Lifecycle(newResource("one"), setField("value", "two")),
			})
		})
	}
}
