// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	"trueup.dev/sandbox"
)

func TestMain(m *testing.M) { apitest.Main(m) }

// env is a namespace of a real Kubernetes API.
type env struct {
	*apitest.Env
	traffic traffic // of managers
}

func newEnv(t *testing.T) *env {
	t.Helper()
	t.Parallel()
	return &env{Env: apitest.New(t, fixture.NewScheme(), sandbox.TestOptions{
		Options: sandbox.Options{Controllers: []string{"none"}, DisablePods: true},
		CRDs:    []any{crd("Resource", "resources")},
	})}
}

// crd returns the definition of a kind whose schema keeps every field.
func crd(kind, plural string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + fixture.GroupVersion.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: fixture.GroupVersion.Group,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Kind: kind, ListKind: kind + "List", Plural: plural, Singular: strings.ToLower(kind),
			},
			Scope: apiextensionsv1.NamespaceScoped,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: fixture.GroupVersion.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)},
				},
				Subresources: &apiextensionsv1.CustomResourceSubresources{
					Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
				},
			}},
		},
	}
}

// start starts a manager. It stops when the returned function is called, or at the end of the test.
func (e *env) start(controllers ...func(ctrl.Manager, reconcilers.Config) error) (stop func()) {
	e.Helper()
	cfg := e.RESTConfig()
	cfg.Wrap(e.traffic.wrap)
	return e.Manager(cfg, ctrl.Options{}, func(_ context.Context, mgr ctrl.Manager) error {
		for _, add := range controllers {
			if err := add(mgr, reconcilers.NewConfig(mgr, nil, time.Hour)); err != nil {
				return err
			}
		}
		return nil
	})
}

// create creates an object in the namespace of the test. Its finalizers are removed at the end of the test.
func (e *env) create(object client.Object) {
	e.Helper()
	e.Add(here(e, object))
	e.Cleanup(func() { e.strip(object) })
}

// strip removes all finalizers from an object, as users do to force a deletion.
func (e *env) strip(object client.Object) {
	e.Helper()
	target := object.DeepCopyObject().(client.Object)
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	e.Must(client.IgnoreNotFound(e.Patch(context.Background(), target, patch)))
}

// here moves an object into the namespace of the test. In a lab it is in another one.
func here[T client.Object](e *env, object T) T {
	object.SetNamespace(e.Namespace)
	return object
}

func (e *env) read(object client.Object) error { return e.Read(here(e, object)) }

func change[T client.Object](e *env, object T, apply func(T)) {
	e.Helper()
	apitest.Change(e.Env, here(e, object), apply)
}

func until[T client.Object](e *env, object T, check func(T) error) {
	e.Helper()
	apitest.Until(e.Env, here(e, object), check)
}

func (e *env) gone(object client.Object) {
	e.Helper()
	e.WaitForDeletion(here(e, object))
}

// remove deletes an object by its name.
func (e *env) remove(object client.Object) {
	e.Helper()
	e.Must(e.Delete(e.Context(), here(e, object)))
}
