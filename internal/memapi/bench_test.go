// SPDX-License-Identifier: Apache-2.0

package memapi_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/memapi"
	"trueup.dev/internal/memapi/kinds"
)

func newRegistry(tb testing.TB) *kinds.Registry {
	tb.Helper()
	registry, err := kinds.NewRegistry(clientgoscheme.Scheme)
	if err != nil {
		tb.Fatal(err)
	}
	return registry
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": "web"}},
		Data:       map[string]string{"key": "value"},
	}
}

func BenchmarkNew(b *testing.B) {
	registry := newRegistry(b)
	b.ReportAllocs()
	for b.Loop() {
		memapi.New(memapi.Options{Registry: registry})
	}
}

func BenchmarkGet(b *testing.B) {
	c := memapi.New(memapi.Options{Registry: newRegistry(b)}).Client("bench")
	if err := c.Create(b.Context(), configMap("a")); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		var obj corev1.ConfigMap
		if err := c.Get(b.Context(), client.ObjectKey{Namespace: "default", Name: "a"}, &obj); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDeepCopy(b *testing.B) {
	obj := configMap("a")
	b.ReportAllocs()
	for b.Loop() {
		obj.DeepCopyObject()
	}
}

func BenchmarkCreate(b *testing.B) {
	registry := newRegistry(b)
	var c client.Client
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if i%100 == 0 {
			c = memapi.New(memapi.Options{Registry: registry}).Client("bench")
		}
		i++
		if err := c.Create(b.Context(), configMap(fmt.Sprint("a", i%100))); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkUpdate(b *testing.B) {
	registry := newRegistry(b)
	var c client.Client
	obj := configMap("a")
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if i%100 == 0 {
			c = memapi.New(memapi.Options{Registry: registry}).Client("bench")
			obj = configMap("a")
			if err := c.Create(b.Context(), obj); err != nil {
				b.Fatal(err)
			}
		}
		i++
		obj.Data["key"] = fmt.Sprint(i)
		if err := c.Update(b.Context(), obj); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkUpdateNothing(b *testing.B) {
	c := memapi.New(memapi.Options{Registry: newRegistry(b)}).Client("bench")
	obj := configMap("a")
	if err := c.Create(b.Context(), obj); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Update(b.Context(), obj); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPatch(b *testing.B) {
	registry := newRegistry(b)
	var c client.Client
	obj := configMap("a")
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if i%100 == 0 {
			c = memapi.New(memapi.Options{Registry: registry}).Client("bench")
			obj = configMap("a")
			if err := c.Create(b.Context(), obj); err != nil {
				b.Fatal(err)
			}
		}
		i++
		before := obj.DeepCopy()
		obj.Data["key"] = fmt.Sprint(i)
		if err := c.Patch(b.Context(), obj, client.MergeFrom(before)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkReconcile creates a server and makes ten calls, like a reconciler in a schedule.
func BenchmarkReconcile(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		server := memapi.New(memapi.Options{Registry: registry(), Applier: applier(), Seed: 1})
		c := server.Client("bench")
		ctx := b.Context()
		owner := widget("a")
		child := configMap("a")
		workload := deployment()
		steps := []func() error{
			func() error { return c.Create(ctx, owner) },
			func() error { return c.Get(ctx, client.ObjectKeyFromObject(owner), owner) },
			func() error {
				before := owner.DeepCopyObject().(client.Object)
				owner.Finalizers = append(owner.Finalizers, hold)
				return c.Patch(ctx, owner, client.MergeFrom(before))
			},
			func() error { return c.List(ctx, &corev1.ConfigMapList{}, client.InNamespace("default")) },
			func() error { return c.Create(ctx, child) },
			func() error { return c.Create(ctx, workload) },
			func() error {
				child.Data["key"] = "other"
				return c.Update(ctx, child)
			},
			func() error {
				workload.Spec.Replicas = new(int32(3))
				return c.Update(ctx, workload)
			},
			func() error {
				owner.Status.Ready = true
				return c.Status().Update(ctx, owner)
			},
			func() error { return c.Delete(ctx, child) },
		}
		for i, step := range steps {
			if err := step(); err != nil {
				b.Fatalf("call %d: %v", i, err)
			}
		}
		server.Garbage()
	}
}

func BenchmarkGarbage(b *testing.B) {
	server := memapi.New(memapi.Options{Registry: registry(), Seed: 1})
	c := server.Client("bench")
	owner := widget("owner")
	if err := c.Create(b.Context(), owner); err != nil {
		b.Fatal(err)
	}
	objects := make([]*corev1.ConfigMap, 20)
	for i := range objects {
		objects[i] = configMap(fmt.Sprint("a", i))
		objects[i].OwnerReferences = []metav1.OwnerReference{refTo(owner, "Widget")}
		if err := c.Create(b.Context(), objects[i]); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		objects[0].Data["key"] = fmt.Sprint(i) // cached results for the previous version are useless
		if err := c.Update(b.Context(), objects[0]); err != nil {
			b.Fatal(err)
		}
		if garbage := server.Garbage(); len(garbage) > 0 {
			b.Fatal(garbage)
		}
	}
}
