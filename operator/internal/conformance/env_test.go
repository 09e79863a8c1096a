// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"trueup.dev/internal/await"
	"trueup.dev/internal/fixture"
	"trueup.dev/reconcilers"
	"trueup.dev/sandbox"
)

// env is a namespace of a real Kubernetes API.
type env struct {
	testing.TB
	client.Client // a user's, without a cache
	*sandbox.Env
	traffic traffic // of managers
}

func newEnv(t *testing.T) *env {
	t.Helper()
	t.Parallel()
	sb := sandbox.ForTest(t, sandbox.TestOptions{
		Options: sandbox.Options{Controllers: []string{"none"}, DisablePods: true},
		CRDs:    []any{crd("Resource", "resources")},
	})
	c, err := client.New(sb.RESTConfig(), client.Options{Scheme: fixture.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	return &env{TB: t, Client: c, Env: sb}
}

// crd is a kind whose schema keeps every field, known or not.
func crd(kind, plural string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + fixture.GroupVersion.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: fixture.GroupVersion.Group,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, ListKind: kind + "List", Plural: plural, Singular: strings.ToLower(kind)},
			Scope: apiextensionsv1.NamespaceScoped,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: fixture.GroupVersion.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)},
				},
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			}},
		},
	}
}

// start starts a manager. It stops with the returned function, or with the test.
func (e *env) start(controllers ...func(ctrl.Manager, reconcilers.Config) error) (stop func()) {
	e.Helper()
	cfg := e.RESTConfig()
	cfg.Wrap(e.traffic.wrap)
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:     e.Scheme(),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{e.Namespace: {}}},
		Controller: config.Controller{SkipNameValidation: new(true)}, // tests have controllers of the same name
	})
	e.must(err)
	for _, add := range controllers {
		e.must(add(mgr, reconcilers.NewConfig(mgr, nil, time.Hour)))
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			e.Errorf("the manager ended with: %v", err)
		}
	})
	e.Cleanup(stop)
	return stop
}

func (e *env) eventually(check func() error) {
	e.Helper()
	await.Nil(e, patience, check)
}

func (e *env) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// create creates an object in the namespace of the test. Its finalizers do not outlive the test.
func (e *env) create(object client.Object) {
	e.Helper()
	object.SetNamespace(e.Namespace)
	e.must(e.Create(e.Context(), object))
	e.Cleanup(func() { e.strip(object) })
}

// strip takes all finalizers off an object, as an impatient user does.
func (e *env) strip(object client.Object) {
	e.Helper()
	target := object.DeepCopyObject().(client.Object)
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	e.must(client.IgnoreNotFound(e.Patch(context.Background(), target, patch)))
}

// read reads an object by its name.
func (e *env) read(object client.Object) error {
	object.SetNamespace(e.Namespace)
	return e.Get(e.Context(), client.ObjectKeyFromObject(object), object)
}

// change reads an object, changes it and writes it, again if another writer was faster.
func change[T client.Object](e *env, object T, apply func(T)) {
	e.Helper()
	e.eventually(func() error {
		e.must(e.read(object))
		apply(object)
		err := e.Update(e.Context(), object)
		if err != nil && !apierrs.IsConflict(err) {
			e.Fatal(err)
		}
		return err
	})
}

// remove deletes an object by its name.
func (e *env) remove(object client.Object) {
	e.Helper()
	object.SetNamespace(e.Namespace)
	e.must(e.Delete(e.Context(), object))
}

// until reads an object until it is as it should be.
func until[T client.Object](e *env, object T, check func(T) error) {
	e.Helper()
	e.eventually(func() error {
		if err := e.read(object); err != nil {
			return err
		}
		return check(object)
	})
}

// gone waits until an object is not there any more.
func (e *env) gone(object client.Object) {
	e.Helper()
	e.eventually(func() error {
		err := e.read(object)
		if err == nil {
			return apierrs.NewAlreadyExists(fixture.GroupVersion.WithResource("").GroupResource(), object.GetName())
		}
		return client.IgnoreNotFound(err)
	})
}
