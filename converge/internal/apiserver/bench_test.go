// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/apiserver"
	"trueup.dev/converge/internal/kinds"
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
		apiserver.New(apiserver.Options{Registry: registry})
	}
}

func BenchmarkGet(b *testing.B) {
	c := apiserver.New(apiserver.Options{Registry: newRegistry(b)}).Client("bench")
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
			c = apiserver.New(apiserver.Options{Registry: registry}).Client("bench")
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
			c = apiserver.New(apiserver.Options{Registry: registry}).Client("bench")
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
	c := apiserver.New(apiserver.Options{Registry: newRegistry(b)}).Client("bench")
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
			c = apiserver.New(apiserver.Options{Registry: registry}).Client("bench")
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
