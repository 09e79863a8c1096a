// SPDX-License-Identifier: Apache-2.0

package otel_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"trueup.dev/observe"
	"trueup.dev/observe/otel"
)

func TestWhereDidTheTimeGo(t *testing.T) {
	provider, exported := newProvider()
	mgr := newFake(t, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			time.Sleep(300 * time.Millisecond)
			return c.Create(ctx, obj, opts...)
		},
	})
	observe.Of(mgr).Add(otel.New(provider, otel.Options{}))
	controller := add(t, mgr, sequence{
		&step{Name: "Quota", Sync: func(context.Context, *corev1.ConfigMap) error {
			time.Sleep(2 * time.Second)
			return nil
		}},
		keeper(),
	})
	synctest.Test(t, func(t *testing.T) {
		if _, err := controller.Reconcile(t.Context(), blog); err != nil {
			t.Fatal(err)
		}
	})
	expect(t, drawing{durations: true}, exported.GetSpans(),
		"reconcile website 2.3s",
		"  event trueup.cause",
		"  website 2.3s",
		"    get ConfigMap 0s",
		"    website.0 2s",
		"      website.0.Quota 2s",
		"    website.1 300ms",
		"      website.1.Secret 300ms",
		"        list Secret 0s",
		"        create Secret (client) 300ms",
	)
}
