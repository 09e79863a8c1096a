// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/observe"
)

// TestWhichCacheIsNotFilled starts a controller with a role that cannot list or watch one kind, and without the
// definition of another one.
func TestWhichCacheIsNotFilled(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for the timeout of caches")
	}
	e := newEnv(t)
	user := e.User(t, e.Namespace+"-controller")
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{"policy"}, Resources: []string{"poddisruptionbudgets"}, Verbs: []string{"get"}},
	}
	meta := metav1.ObjectMeta{Name: "controller", Namespace: e.Namespace}
	e.Must(e.Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}))
	e.Must(e.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "controller"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: e.Namespace + "-controller"}},
	}))
	mgr, err := ctrl.NewManager(user.RESTConfig(), ctrl.Options{
		Scheme: e.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{e.Namespace: {}}},
		Controller: config.Controller{SkipNameValidation: new(true), CacheSyncTimeout: 12 * time.Second},
	})
	e.Must(err)
	var mu sync.Mutex
	waits := map[string]observe.CacheWait{}
	observe.Of(mgr).Add(observe.Func(func(_ context.Context, event observe.Event) {
		if wait, ok := event.(*observe.CacheWait); ok && !wait.Ended {
			mu.Lock()
			defer mu.Unlock()
			if _, ok := waits[wait.Kind.Kind]; !ok && time.Since(wait.Since) < 10*time.Second {
				waits[wait.Kind.Kind] = *wait
			}
		}
	}))
	missing := &unstructured.Unstructured{}
	missing.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Missing"})
	bldr := ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Owns(&policyv1.PodDisruptionBudget{}).Owns(missing)
	e.Must(observe.Controller(bldr).Complete(reconcile.Func(
		func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil },
	)))
	text := ""
	if err := mgr.Start(t.Context()); err != nil {
		text = err.Error()
	}
	for _, want := range []string{
		"the cache of Missing.example.com did not sync (", "no matches for kind", "apply its CustomResourceDefinition",
		"the cache of PodDisruptionBudget.policy did not sync (", `cannot list resource "poddisruptionbudgets"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the error at exit does not contain %q: %s", want, text)
		}
	}
	if strings.Contains(text, "the cache of ConfigMap") {
		t.Errorf("the error at exit names a kind whose cache was filled: %s", text)
	}
	mu.Lock()
	defer mu.Unlock()
	for kind, want := range map[string]string{
		"PodDisruptionBudget": "waits for the cache of PodDisruptionBudget.policy: ",
		"Missing":             "waits for the cache of Missing.example.com: ",
	} {
		wait, ok := waits[kind]
		if !ok || !strings.HasPrefix(wait.String(), want) || wait.Err == nil {
			t.Errorf("got wait %v, want %q with a reason", &wait, want)
		}
	}
	if len(waits) != 2 {
		t.Errorf("got %d waits, want 2: %v", len(waits), waits)
	}
}
