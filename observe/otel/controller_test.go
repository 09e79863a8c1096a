// SPDX-License-Identifier: Apache-2.0

package otel_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/observe"
	"trueup.dev/reconcilers"
)

const password = "correct-horse-battery"

type (
	step     = reconcilers.SyncReconciler[*corev1.ConfigMap]
	sequence = reconcilers.Sequence[*corev1.ConfigMap]

	subReconciler = reconcilers.SubReconciler[*corev1.ConfigMap]
)

// keeper returns the step that keeps a Secret for each ConfigMap.
func keeper() subReconciler {
	return &reconcilers.ChildReconciler[*corev1.ConfigMap, *corev1.Secret, *corev1.SecretList]{
		Name: "Secret",
		DesiredChild: func(_ context.Context, c *corev1.ConfigMap) (*corev1.Secret, error) {
			return &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name},
				Data:       map[string][]byte{"password": []byte(password), "user": []byte(c.Data["user"])},
			}, nil
		},
		MergeBeforeUpdate:          func(current, desired *corev1.Secret) { current.Data = desired.Data },
		ReflectChildStatusOnParent: func(context.Context, *corev1.ConfigMap, *corev1.Secret, error) {},
	}
}

// add adds the controller "website" to a manager.
func add(t testing.TB, mgr ctrl.Manager, reconciler subReconciler) reconcile.Reconciler {
	t.Helper()
	config := reconcilers.NewConfig(mgr, nil, time.Hour)
	config.Recorder = &record.FakeRecorder{} // the default writes events in the background
	root := &reconcilers.ResourceReconciler[*corev1.ConfigMap]{Name: "website", Reconciler: reconciler, Config: config}
	controller, err := root.SetupWithManagerYieldingController(context.Background(), mgr)
	if err != nil {
		t.Fatal(err)
	}
	return controller
}

var blog = reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "default", Name: "blog"}}

// fakeCache reads from a client.
type fakeCache struct {
	informertest.FakeInformers
	client client.Client
}

func (c *fakeCache) Get(ctx context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	return c.client.Get(ctx, key, obj)
}

// newFake returns a manager with a fake client that has a ConfigMap. It does not run.
func newFake(t testing.TB, calls interceptor.Funcs) ctrl.Manager {
	t.Helper()
	mapper := meta.NewDefaultRESTMapper(nil)
	for kind := range scheme.Scheme.AllKnownTypes() {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	calls.List = func(ctx context.Context, c client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
		return c.List(ctx, list, client.InNamespace(blog.Namespace)) // without an index of owners
	}
	c := fake.NewClientBuilder().WithInterceptorFuncs(calls).WithObjects(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: blog.Namespace, Name: blog.Name, UID: "1"},
	}).Build()
	mgr, err := ctrl.NewManager(&rest.Config{Host: "http://nowhere.invalid"}, ctrl.Options{
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mapper, nil },
		NewClient:      func(*rest.Config, client.Options) (client.Client, error) { return c, nil },
		NewCache: func(*rest.Config, cache.Options) (cache.Cache, error) {
			return &fakeCache{FakeInformers: informertest.FakeInformers{Scheme: scheme.Scheme}, client: c}, nil
		},
		Metrics:    server.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return mgr
}

// reconcileOnce reconciles the ConfigMap of a fake manager.
func reconcileOnce(t *testing.T, reconciler subReconciler, listeners ...observe.Listener) {
	t.Helper()
	mgr := newFake(t, interceptor.Funcs{})
	for _, listener := range listeners {
		observe.Of(mgr).Add(listener)
	}
	_, _ = add(t, mgr, reconciler).Reconcile(t.Context(), blog) // the traces have the result
}
