// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// oneObject is a cache that has one ConfigMap.
type oneObject struct {
	cache.Cache
	has *corev1.ConfigMap
}

func (c *oneObject) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	c.has.DeepCopyInto(obj.(*corev1.ConfigMap))
	return nil
}

func TestDidTheApplyChangeAnything(t *testing.T) {
	for name, tc := range map[string]struct {
		watched        bool
		cached, answer string
		wantBefore     string
		wantNoOp       bool
	}{
		"unchanged":        {true, "7", "7", "7", true},
		"changed":          {true, "7", "8", "7", false},
		"kind not watched": {false, "7", "7", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			hub, cached := &Hub{}, &oneObject{has: configMap(tc.cached, nil)}
			if tc.watched {
				hub.watched.Store(typeOf(cached, &corev1.ConfigMap{}), true)
			}
			var got Call
			hub.Add(Func(func(_ context.Context, event Event) { got = *event.(*Call) }))
			c := NewClient(interceptor.NewClient(fake.NewFakeClient(), interceptor.Funcs{
				Apply: func(_ context.Context, _ client.WithWatch, obj runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
					obj.(*corev1apply.ConfigMapApplyConfiguration).WithResourceVersion(tc.answer)
					return nil
				},
			}), cached, hub)
			if err := c.Apply(t.Context(), corev1apply.ConfigMap("settings", "default"), client.FieldOwner("test")); err != nil {
				t.Fatal(err)
			}
			if got.Before != tc.wantBefore || got.After != tc.answer || got.NoOp != tc.wantNoOp {
				t.Errorf("before %q, after %q, no-op %v", got.Before, got.After, got.NoOp)
			}
		})
	}
}
