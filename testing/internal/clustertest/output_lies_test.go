// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
)

// lies are cases that pass in memory and fail on a cluster, because of a mistake that only a server detects.
func lies() []printing {
	frozen := newResource("given")
	frozen.Spec.Fields = map[string]string{"frozen": "1"}
	thawed := frozen.DeepCopy()
	thawed.Spec.Fields = map[string]string{"frozen": "2"}
	long := newResource("given")
	long.Spec.Fields = map[string]string{"a": "more than sixteen letters"}

	backup := newService()
	backup.Name = "backup"

	return []printing{
		lie("InvalidName", testCase{ExpectCreates: []client.Object{newConfigMap("My_Config")}}, func(
			ctx context.Context, c reconcilers.Config,
		) error {
			return c.Create(ctx, newConfigMap("My_Config"))
		}),
		lie("ImmutableField", testCase{
			GivenObjects: []client.Object{frozen}, ExpectUpdates: []client.Object{thawed},
		}, func(ctx context.Context, c reconcilers.Config) error {
			read := &fixture.Resource{}
			if err := c.Get(ctx, client.ObjectKeyFromObject(frozen), read); err != nil {
				return err
			}
			read.Spec = thawed.Spec
			return c.Update(ctx, read)
		}),
		lie("Schema", testCase{
			GivenObjects: []client.Object{newResource("given")}, ExpectUpdates: []client.Object{long},
		}, func(ctx context.Context, c reconcilers.Config) error {
			read := &fixture.Resource{}
			if err := c.Get(ctx, client.ObjectKeyFromObject(frozen), read); err != nil {
				return err
			}
			read.Spec = long.Spec
			return c.Update(ctx, read)
		}),
		// In memory, the service has no field that another service must not have.
		lie("CopiedDefaults", testCase{
			GivenObjects: []client.Object{newService()}, ExpectCreates: []client.Object{backup},
		}, func(ctx context.Context, c reconcilers.Config) error {
			read := &corev1.Service{}
			if err := c.Get(ctx, client.ObjectKeyFromObject(newService()), read); err != nil {
				return err
			}
			copied := backup.DeepCopy()
			copied.Spec = read.Spec
			return c.Create(ctx, copied)
		}),
	}
}

func lie(name string, tc testCase, do func(ctx context.Context, c reconcilers.Config) error) printing {
	factory := func(_ *testing.T, _ *testCase, c reconcilers.Config) reconcile.Reconciler {
		return reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
			return reconcile.Result{}, do(ctx, c)
		})
	}
	tc.Name = name
	tc.StatusSubResourceTypes = []client.Object{&fixture.Resource{}}
	return printing{name: name, run: func(t *testing.T) {
		c := newCluster(t)
		for _, on := range []struct {
			name string
			opts []rtesting.RunOption
		}{{"Fake", nil}, {"Cluster", []rtesting.RunOption{c.on()}}} {
			t.Run(on.name, func(t *testing.T) {
				tc := tc
				tc.Run(t, scheme, factory, on.opts...)
			})
		}
	}}
}
