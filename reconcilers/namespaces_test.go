// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// What does a read say of a namespace that the manager does not cache?
func TestConfig_ReadsOfANamespaceThatIsNotCached(t *testing.T) {
	w := newWorld(t)
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"ConfigMap", "ConfigMapList"} {
		mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	some, err := cache.New(&rest.Config{Host: "http://nowhere.invalid"}, cache.Options{
		Scheme: w.Scheme, Mapper: mapper, DefaultNamespaces: map[string]cache.Config{"default": {}},
	})
	wantErr(t, nil, err)
	w.Config.Client = interceptor.NewClient(w.Server, interceptor.Funcs{
		Get: func(
			ctx context.Context, _ client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
		) error {
			return some.Get(ctx, key, obj, opts...)
		},
		List: func(ctx context.Context, _ client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return some.List(ctx, list, opts...)
		},
	})
	config := configFor(w, newManager(t, w, newEventCache(w.Scheme)))
	for what, err := range map[string]error{
		"get":  config.Get(t.Context(), client.ObjectKey{Namespace: "elsewhere", Name: "it"}, &corev1.ConfigMap{}),
		"list": config.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace("elsewhere")),
	} {
		const want = `the manager does not cache the namespace "elsewhere"; add it to DefaultNamespaces of its cache.Options`
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", what, err, want)
		}
	}
}
