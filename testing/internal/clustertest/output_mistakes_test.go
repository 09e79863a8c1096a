// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"trueup.dev/internal/testkit/fixture"
	rtesting "trueup.dev/testing"
)

// mistakes are cases that cannot start because of their given objects.
func mistakes() []printing {
	unserved := &unstructured.Unstructured{}
	unserved.SetAPIVersion("example.com/v1")
	unserved.SetKind("Nothing")
	unserved.SetNamespace(namespace)
	unserved.SetName("given")
	old := unserved.DeepCopy()
	old.SetAPIVersion("apps/v1beta1")
	old.SetKind("Deployment")
	unknown := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": fixture.GroupVersion.String(), "kind": "Resource",
		"metadata": map[string]any{"namespace": namespace, "name": "given"},
		"spec":     map[string]any{"fileds": map[string]any{"a": "1"}},
	}}
	return []printing{
		notes(),
		unable("GivenInvalid", testCase{
			GivenObjects: []client.Object{newConfigMap("Given_1"), newConfigMap("fine"), newConfigMap("Given_2")},
		}),
		unable("GivenUnknownField", testCase{GivenObjects: []client.Object{unknown}}),
		unable("KindNotServed", testCase{GivenObjects: []client.Object{unserved}, APIGivenObjects: []client.Object{old}}),
		unable("NoClientBuilder", testCase{WithClientBuilder: func(*fake.ClientBuilder) *fake.ClientBuilder { return nil }}),
		unable("GivenExists", testCase{GivenObjects: []client.Object{
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "default"}},
		}}),
		{name: "NoConfig", run: func(t *testing.T) {
			(&testCase{}).Run(t, scheme, doing(nil, nil), rtesting.OnCluster(nil))
		}},
		{name: "OnlyAdditionalCluster", run: func(t *testing.T) {
			(&testCase{}).Run(t, scheme, doing(nil, nil), rtesting.OnAdditionalCluster("remote", newCluster(t).RESTConfig()))
		}},
	}
}

// notes is a failing case whose reason is a response of the API.
func notes() printing {
	resource := newResource("given")
	updated := newResource("given")
	updated.Finalizers = []string{"unqualified"}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "default"}}
	tc := testCase{
		Name: "Notes", GivenObjects: []client.Object{resource}, ExpectUpdates: []client.Object{updated, account},
	}
	return printing{name: "Notes", run: func(t *testing.T) {
		c := newCluster(t)
		tc.Run(t, scheme, doing(c, func(w *world) {
			w.must(w.cluster.Patch(w.ctx, newResource("given"),
				client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"fields":{"a":"1"}}}`)),
				client.FieldOwner("another-client")))
			read := newResource("given")
			w.must(w.Get(w.ctx, client.ObjectKeyFromObject(read), read))
			read.Finalizers = updated.Finalizers
			w.must(w.Update(w.ctx, read))
			w.must(w.Update(w.ctx, account.DeepCopy()))
		}), c.on())
	}}
}

// impossibilities are cases that a cluster cannot represent.
func impossibilities() []printing {
	stale := newConfigMap("given")
	stale.Data = map[string]string{"a": "stale"}
	nameless := newConfigMap("")
	nowhere := newConfigMap("given")
	nowhere.Namespace = ""
	return []printing{
		unable("StaleCache", testCase{
			GivenObjects: []client.Object{stale}, APIGivenObjects: []client.Object{newConfigMap("given")},
		}),
		unable("NoIdentity", testCase{GivenObjects: []client.Object{nameless, nowhere}}),
		unable("ClientBuilder", testCase{WithClientBuilder: func(b *fake.ClientBuilder) *fake.ClientBuilder {
			return b.WithInterceptorFuncs(interceptor.Funcs{}).WithObjects(newConfigMap("built")).WithIndex(
				&corev1.ConfigMap{}, "index", nil,
			)
		}}),
		unable("APIResources", testCase{GivenAPIResources: []*metav1.APIResourceList{
			{GroupVersion: "v1", APIResources: []metav1.APIResource{
				{
					Name: "configmaps", Kind: "ConfigMap", Namespaced: true,
				}, {Name: "namespaces", Kind: "Namespace", Namespaced: true},
			}},
			{GroupVersion: "example.com/v1", APIResources: []metav1.APIResource{{Name: "things", Kind: "Thing"}}},
		}}),
		unable("AdditionalConfigs", testCase{AdditionalConfigs: map[string]rtesting.ExpectConfig{"remote": {}}}),
		unable("NamespaceExists", testCase{GivenObjects: []client.Object{
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: map[string]string{"tier": "gold"}}},
		}}),
	}
}

// unable is a case whose reconciler must not be called.
func unable(name string, tc testCase) printing {
	tc.Name = name
	return printing{name: name, run: func(t *testing.T) {
		c := newCluster(t)
		tc.Run(t, scheme, doing(c, func(w *world) { w.Error("the reconciler is called") }), c.on())
	}}
}
