// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A request that reads live must not be followed by one that reads older data: after a write with a lost response, the
// cache may not contain the write yet.
func TestLiveReadsAreWaitedFor(t *testing.T) {
	key := client.ObjectKey{Namespace: "default", Name: "test"}
	configMap := func() *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	}
	get := func(t *testing.T, gone bool) func(ctx context.Context, c client.Client) {
		return func(ctx context.Context, c client.Client) {
			if err := c.Get(ctx, key, &corev1.ConfigMap{}); apierrs.IsNotFound(err) != gone {
				t.Errorf("Get = %v", err)
			}
		}
	}
	for name, tc := range map[string]struct {
		given []client.Object
		lost  func(ctx context.Context, c client.Client) error // is done, but its outcome is unknown
		read  func(ctx context.Context, c client.Client)
		waits bool
	}{
		"a new object": {
			lost:  func(ctx context.Context, c client.Client) error { return c.Create(ctx, configMap()) },
			read:  get(t, false),
			waits: true,
		},
		"a new object in a list": {
			lost: func(ctx context.Context, c client.Client) error { return c.Create(ctx, configMap()) },
			read: func(ctx context.Context, c client.Client) {
				list := &corev1.ConfigMapList{}
				if err := c.List(ctx, list); err != nil || len(list.Items) != 1 {
					t.Errorf("List = %v, %d items", err, len(list.Items))
				}
			},
			waits: true,
		},
		"an object that no longer exists": {
			given: []client.Object{configMap()},
			lost:  func(ctx context.Context, c client.Client) error { return c.Delete(ctx, configMap()) },
			read:  get(t, true),
			waits: true,
		},
		"an unchanged object": {
			given: []client.Object{configMap()},
			lost:  func(context.Context, client.Client) error { return nil },
			read:  get(t, false),
		},
		"nothing was read": {
			lost: func(ctx context.Context, c client.Client) error { return c.Create(ctx, configMap()) },
			read: func(context.Context, client.Client) {},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.given...)
			w.cluster.reads(&corev1.ConfigMap{})
			w.must(tc.lost(t.Context(), w.server))
			w.reconcile(func(ctx context.Context, _ client.Client) { w.cluster.journal(ctx).addUncertain() })
			if wait, live := w.reconcile(tc.read); wait != 0 || !live {
				t.Fatalf("after a write with an unknown outcome: deferred for %s, live %t", wait, live)
			}
			if wait, live := w.reconcile(nil); wait > 0 != tc.waits || live {
				t.Errorf("while the cache is behind: deferred for %s, live %t", wait, live)
			}
			w.catchUp()
			if wait, live := w.reconcile(nil); wait > 0 || live {
				t.Errorf("when the cache has caught up: deferred for %s, live %t", wait, live)
			}
		})
	}
}
