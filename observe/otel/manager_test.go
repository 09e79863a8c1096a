// SPDX-License-Identifier: Apache-2.0

package otel_test

import (
	"context"
	"encoding/base64"
	"sync"
	"testing"
	"time"

	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"trueup.dev/observe"
	"trueup.dev/reconcilers"
	"trueup.dev/sandbox"
	_ "trueup.dev/sandbox/memory"
)

// TestWhatDidTheControllerDo runs a controller on the API in memory, and exports its traces over OTLP.
func TestWhatDidTheControllerDo(t *testing.T) {
	env := sandbox.ForTest(t, sandbox.TestOptions{Options: sandbox.Options{Backend: sandbox.Memory}})
	user, err := client.New(env.RESTConfig(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	site := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: "blog"}}
	if err := user.Create(t.Context(), site); err != nil {
		t.Fatal(err)
	}
	mgr, err := ctrl.NewManager(env.RESTConfig(), ctrl.Options{
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{env.Namespace: {}}},
		Metrics:    server.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	received := startCollector(t)
	shutdown, err := AddTraces(t.Context(), mgr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	settled, settle := context.WithTimeout(t.Context(), time.Minute)
	observe.Of(mgr).Add(observe.Func(func(_ context.Context, e observe.Event) {
		finished, ok := e.(*observe.ReconcileFinished)
		if ok && finished.Run.Object.Name == site.Name && finished.Run.Causes[0].Verb == observe.Updated {
			settle() // the reconcile of the label
		}
	}))
	add(t, mgr, sequence{
		// Reports the Secret of an earlier reconcile.
		&step{Name: "Report", Sync: func(ctx context.Context, reported *corev1.ConfigMap) error {
			c := reconcilers.RetrieveConfigOrDie(ctx)
			err := c.Get(ctx, client.ObjectKeyFromObject(reported), &corev1.Secret{})
			if err != nil || reported.Labels != nil {
				return client.IgnoreNotFound(err)
			}
			patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"a":"b"}}}`))
			return c.Patch(ctx, reported.DeepCopy(), patch)
		}},
		keeper(),
	})
	start(t, mgr)
	received.traces(t, site.Name, 2)
	<-settled.Done()

	const leaked = "leaked-password"
	secret := &corev1.Secret{}
	if err := user.Get(t.Context(), client.ObjectKeyFromObject(site), secret); err != nil {
		t.Fatal(err)
	}
	secret.StringData = map[string]string{"password": leaked}
	if err := user.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	expect(t,
		drawing{keys: []string{"k8s.object.name", "trueup.cause.type", "trueup.cause.verb", "trueup.cause.changed"}},
		received.traces(t, site.Name, 3),
		"reconcile website name=blog",
		"  event trueup.cause name=blog type=StartUp verb=Created",
		"  website",
		"    get ConfigMap name=blog",
		"    website.0",
		"      website.0.Report",
		"        get Secret name=blog",
		"    website.1",
		"      website.1.Secret",
		"        list Secret",
		"        create Secret (client) name=blog",
		"reconcile website name=blog",
		"  link to create Secret name=blog type=Owned verb=Created",
		"  website",
		"    get ConfigMap name=blog",
		"    website.0",
		"      website.0.Report",
		"        get Secret name=blog",
		"        patch ConfigMap (client) name=blog",
		"    website.1",
		"      website.1.Secret",
		"        list Secret",
		// The reconcile of the changed label did nothing.
		"reconcile website name=blog",
		`  event trueup.cause name=blog type=Owned verb=Updated changed=["data"]`,
		"  website",
		"    get ConfigMap name=blog",
		"    website.0",
		"      website.0.Report",
		"        get Secret name=blog",
		"    website.1",
		"      website.1.Secret",
		"        list Secret",
		"        update Secret (client) name=blog",
	)
	for _, value := range []string{password, leaked} {
		if received.contains(value) || received.contains(base64.StdEncoding.EncodeToString([]byte(value))) {
			t.Errorf("the traces contain %q", value)
		}
	}
	if got := received.scopes["trueup.dev/observe/otel"]; got != semconv.SchemaURL || !received.contains("blog") {
		t.Errorf("schema URL %q", got)
	}
}

// start runs a manager until the test ends.
func start(t *testing.T, mgr ctrl.Manager) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := mgr.Start(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}
