// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"net/http"
	"testing"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// unreached is a cluster that receives no calls.
type unreached struct{ cluster.Cluster }

func (unreached) GetConfig() *rest.Config     { return &rest.Config{Host: "http://nowhere.invalid"} }
func (unreached) GetHTTPClient() *http.Client { return &http.Client{} }
func (unreached) GetScheme() *runtime.Scheme  { return scheme.Scheme }
func (unreached) GetAPIReader() client.Reader { return nil }
func (unreached) GetRESTMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	return mapper
}

// Caches of several namespaces wait for their informers. Informers that are made only for their ListerWatcher never
// sync.
func TestCustomCache_NamespacesLeaveNoGoroutines(t *testing.T) {
	before := goleak.IgnoreCurrent()
	informer, err := NewCustomCache(testConfigMaps, unreached{}, NewMemoryStore(), Options{
		Namespaces: []string{"a", "b"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(informer.feeds) != 2 {
		t.Errorf("%d feeds, want one for each namespace", len(informer.feeds))
	}
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
}
