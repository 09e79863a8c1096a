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
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// bucket is an external resource whose name the cloud generates: a second creation makes a second one.
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

// distant is a bucket in a cloud that is eventually consistent, creates things asynchronously, and returns the first
// response again to a creation with the same token.
func distant(cloud converge.Cloud) *external.Resource[*fixture.Resource, string] {
	cloud = cloud.VisibleAfter(2 * time.Second).ReadyAfter(4 * time.Second)
	r := bucket(cloud, external.Delete).(*external.Resource[*fixture.Resource, string])
	r.VisibilityDelay, r.PollInterval = 3*time.Second, 3*time.Second // a run ends 15 seconds after the last change
	r.Create = func(ctx context.Context, r *fixture.Resource, token string) (string, string, error) {
		value := r.Spec.Fields["value"]
		key, err := cloud.CreateOnce(ctx, token, token+"-", value)
		return key, value, err
	}
	r.Ready = func(ctx context.Context, r *fixture.Resource, _ string) bool {
		ready, err := cloud.Ready(ctx, r.Status.Fields["bucket"])
		return err == nil && ready
	}
	return r
}

// distantScenario has a bucket that a later step uses.
func distantScenario(
	t *testing.T, steps []converge.Step, build func(converge.Cloud) *external.Resource[*fixture.Resource, string],
) converge.Scenario {
	return converge.Scenario{
		Scheme: scheme, For: &fixture.Resource{}, Steps: steps,
		Setup: func(mgr ctrl.Manager) error {
			root := &reconcilers.ResourceReconciler[*fixture.Resource]{
				Config: reconcilers.NewConfig(mgr, nil, time.Hour),
				Reconciler: reconcilers.Sequence[*fixture.Resource]{
					build(converge.EnvOf(mgr).Cloud), &reconcilers.SyncReconciler[*fixture.Resource]{
						Name: "Used", Sync: func(_ context.Context, r *fixture.Resource) error {
							r.Status.Fields["used"] = r.Status.Fields["bucket"]
							return nil
						},
					},
				},
			}
			return root.SetupWithManager(t.Context(), mgr)
		},
	}
}

// TestExternal_distant proves the same for a cloud that is eventually consistent, asynchronous and idempotent by token,
// also after another client has deleted the external resource.
func TestExternal_distant(t *testing.T) {
	for name, steps := range map[string][]converge.Step{
		"lifecycle": converge.Lifecycle(newResource("one"), setField("value", "two")),
		"deleted at once": converge.Steps(
			converge.Apply(newResource("one")), converge.Delete(newResource("one")), converge.Settle(),
		),
		"deleted by another client": deletedByAnother(),
	} {
		t.Run(name, func(t *testing.T) { prove(t, distantScenario(t, steps, distant)) })
	}
}

func deletedByAnother() []converge.Step {
	return converge.Steps(
		converge.Apply(newResource("one")), converge.Settle(),
		converge.DeleteInCloud(""), converge.Change(newResource("one"), setField("value", "two")), converge.Settle(),
		converge.Delete(newResource("one")), converge.Settle(),
	)
}

// TestExternal_distantFinds checks that the cloud finds what external.Resource avoids.
func TestExternal_distantFinds(t *testing.T) {
	if raceDetector {
		t.Skip("without the race detector only")
	}
	lifecycle := converge.Lifecycle(newResource("one"), setField("value", "two"))
	for name, c := range map[string]struct {
		steps   []converge.Step
		mistake func(*external.Resource[*fixture.Resource, string], converge.Cloud)
	}{
		"what is not found once does not exist": {
			lifecycle, func(r *external.Resource[*fixture.Resource, string], _ converge.Cloud) { r.VisibilityDelay = -1 },
		},
		"a creation that is not idempotent": {
			lifecycle, func(r *external.Resource[*fixture.Resource, string], cloud converge.Cloud) {
				r.Create = func(ctx context.Context, r *fixture.Resource, token string) (string, string, error) {
					key, err := cloud.CreateNamed(ctx, token+"-", r.Spec.Fields["value"])
					return key, r.Spec.Fields["value"], err
				}
			},
		},
		"the token of a deleted one": {
			deletedByAnother(), func(r *external.Resource[*fixture.Resource, string], cloud converge.Cloud) {
				r.Create = func(ctx context.Context, r *fixture.Resource, _ string) (string, string, error) {
					key, err := cloud.CreateOnce(ctx, string(r.UID), string(r.UID)+"-", r.Spec.Fields["value"])
					return key, r.Spec.Fields["value"], err
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			report, err := converge.Check(t, distantScenario(t, c.steps,
				func(cloud converge.Cloud) *external.Resource[*fixture.Resource, string] {
					r := distant(cloud)
					c.mistake(r, cloud)
					return r
				}), converge.DefaultOptions())
			if err == nil && report.Failure == nil {
				t.Error("nothing was found")
			}
		})
	}
}
