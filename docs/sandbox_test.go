// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"trueup.dev/examples/website"
	"trueup.dev/sandbox"
)

// region sandbox-manager
// startController runs the controller in the namespace of the test until the test ends.
func startController(t *testing.T, env *sandbox.Env) {
	t.Helper()
	mgr, err := ctrl.NewManager(env.RESTConfig(), ctrl.Options{
		Scheme:     newScheme(),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{env.Namespace: {}}},
		Controller: config.Controller{SkipNameValidation: new(true)}, // the next test uses the same name
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := setUp(t.Context(), mgr); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
}

// endregion

// region sandbox-test
func TestWebsite_pagesComeBack(t *testing.T) {
	env := sandbox.ForTest(t, sandbox.TestOptions{CRDs: []any{website.CRDs()}})
	startController(t, env)
	api, err := client.New(env.RESTConfig(), client.Options{Scheme: newScheme()})
	if err != nil {
		t.Fatal(err)
	}

	site := newSite()
	site.ObjectMeta = metav1.ObjectMeta{Namespace: env.Namespace, Name: "bakery"}
	if err := api.Create(t.Context(), site); err != nil {
		t.Fatal(err)
	}
	pages := &corev1.ConfigMap{}
	exist := func(ctx context.Context) (bool, error) {
		err := api.Get(ctx, client.ObjectKey{Namespace: env.Namespace, Name: "bakery-pages"}, pages)
		return err == nil, client.IgnoreNotFound(err)
	}
	eventually(t, "the pages are written", exist)

	first := pages.UID
	if err := api.Delete(t.Context(), pages); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pages come back", func(ctx context.Context) (bool, error) {
		done, err := exist(ctx)
		return done && pages.UID != first, err
	})
	eventually(t, "they go with the site", func(ctx context.Context) (bool, error) {
		if err := api.Delete(ctx, site); client.IgnoreNotFound(err) != nil {
			return false, err
		}
		err := api.Get(ctx, client.ObjectKeyFromObject(pages), pages)
		return apierrs.IsNotFound(err), client.IgnoreNotFound(err) // by the garbage collector
	})
}

func eventually(t *testing.T, what string, condition wait.ConditionWithContextFunc) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, condition); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// endregion
