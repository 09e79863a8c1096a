// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/resource"
	"trueup.dev/sandbox"
)

func TestMain(m *testing.M) { apitest.Main(m) }

// crd returns the definition of a kind whose spec and status may have any fields.
func crd(
	kind resource.Kind, subresources *apiextensionsv1.CustomResourceSubresources,
) *apiextensionsv1.CustomResourceDefinition {
	anything := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: kind.Plural() + "." + kind.Group()},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: kind.Group(),
			Scope: apiextensionsv1.ResourceScope(kind.Scope()),
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Kind: kind.Kind(), ListKind: kind.Kind() + "List", Plural: kind.Plural(), Singular: strings.ToLower(kind.Kind()),
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: kind.Version(), Served: true, Storage: true, Subresources: subresources,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": anything, "status": anything},
				}},
			}},
		},
	}
}

func crds() []any {
	return []any{
		crd(theme, nil),
		crd(myKind, &apiextensionsv1.CustomResourceSubresources{
			Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
			Scale: &apiextensionsv1.CustomResourceSubresourceScale{
				SpecReplicasPath:   ".spec.replicas",
				StatusReplicasPath: ".status.replicas",
			},
		}),
	}
}

// env is a namespace of a real Kubernetes API.
type env struct {
	*apitest.Env
	clients resource.ClientGenerator
	a       resource.Identifier // of an object in the namespace
}

func newEnv(t *testing.T) *env {
	t.Helper()
	t.Parallel()
	e := &env{Env: apitest.New(t, newScheme(t), sandbox.TestOptions{CRDs: crds()})}
	e.clients, e.a = resource.NewClientGenerator(e.Client, nil), resource.Identifier{Namespace: e.Namespace, Name: "a"}
	return e
}

// cached returns a client with a cache of the namespace, and the cluster-scoped objects.
func (e *env) cached() client.Client {
	e.Helper()
	caches, err := cache.New(e.RESTConfig(), cache.Options{
		Scheme: newScheme(e), DefaultNamespaces: map[string]cache.Config{e.Namespace: {}},
	})
	e.Must(err)
	e.Go("the cache", caches.Start)
	if !caches.WaitForCacheSync(e.Context()) {
		e.Fatal("the cache did not start")
	}
	c, err := client.New(e.RESTConfig(), client.Options{Scheme: newScheme(e), Cache: &client.CacheOptions{Reader: caches}})
	e.Must(err)
	return c
}

func (e *env) newMyKind(name string, change ...func(*MyKind)) *MyKind {
	return newMyKind(name, append([]func(*MyKind){func(o *MyKind) { o.Namespace = e.Namespace }}, change...)...)
}
