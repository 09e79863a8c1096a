// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"trueup.dev/console"
	"trueup.dev/converge"
	"trueup.dev/observe"
	"trueup.dev/observe/recorder"
	"trueup.dev/sandbox"
	_ "trueup.dev/sandbox/memory"
)

// region recording-wrong
// RouteReconciler copies the selector of each Service to a ConfigMap that a proxy reads.
type RouteReconciler struct {
	client.Client
}

func (r *RouteReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	service := &corev1.Service{}
	if err := r.Get(ctx, req.NamespacedName, service); err != nil || service.DeletionTimestamp != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	route := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: service.Namespace, Name: service.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, route, func() error {
		route.Data = service.Spec.Selector
		return controllerutil.SetControllerReference(service, route, r.Scheme())
	})
	if apierrs.IsConflict(err) {
		return ctrl.Result{}, nil // another client has changed it: the event starts the next reconcile
	}
	return ctrl.Result{}, err
}

// endregion

// setupRoutes registers the controller, with watches of what it owns.
func setupRoutes(owns ...client.Object) func(mgr manager.Manager) error {
	return func(mgr manager.Manager) error {
		b := ctrl.NewControllerManagedBy(mgr).For(&corev1.Service{})
		for _, owned := range owns {
			b.Owns(owned)
		}
		return observe.Controller(b).Complete(&RouteReconciler{observe.Client(mgr)})
	}
}

// interfering is a transport in which another client changes an object just before the first update of it.
type interfering struct {
	http.RoundTripper
	change func()
	once   sync.Once
}

func (i *interfering) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/configmaps/web") {
		i.once.Do(i.change)
	}
	return i.RoundTripper.RoundTrip(r)
}

// recordRoute runs the controller on the API in memory, while another client interferes, and returns the file with the
// recording of its console.
func recordRoute(t *testing.T) string {
	t.Helper()
	env := sandbox.ForTest(t, sandbox.TestOptions{
		Private: true, Options: sandbox.Options{Backend: sandbox.Memory},
	})
	api, err := client.New(env.RESTConfig(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	key := client.ObjectKey{Namespace: "default", Name: "web"}
	config := env.RESTConfig()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &interfering{RoundTripper: next, change: func() {
			route := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
			patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"audited":"yes"}}}`))
			if err := api.Patch(context.Background(), route, patch); err != nil {
				t.Error(err)
			}
		}}
	})
	mgr, err := ctrl.NewManager(config, ctrl.Options{Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	// region recording-console
	r := recorder.New(recorder.Options{Objects: true})
	err = console.AddToManager(mgr, console.Options{Recorder: r, Address: "127.0.0.1:0"})
	// endregion
	if err != nil {
		t.Fatal(err)
	}
	if err := setupRoutes()(mgr); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- mgr.Start(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	web := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "web", "track": "stable"}, Ports: []corev1.ServicePort{{Port: 80}},
		},
	}
	if err := api.Create(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	wait := func(what string, runs int) {
		eventually(t, what, func(context.Context) (bool, error) {
			recording, _ := r.Recording("service", key)
			return len(recording.Runs) == runs, nil
		})
	}
	wait("the route is written", 1)
	eventually(t, "the controller knows the route", func(ctx context.Context) (bool, error) {
		err := mgr.GetClient().Get(ctx, key, &corev1.ConfigMap{})
		return err == nil, client.IgnoreNotFound(err)
	})
	web.Spec.Selector["track"] = "canary"
	if err := api.Update(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	wait("the update has a conflict", 2)
	return download(t, r)
}

// download does what "trueup record" does.
func download(t *testing.T, r *recorder.Recorder) string {
	t.Helper()
	pages := httptest.NewServer(console.Handler(r))
	defer pages.Close()
	objects, _ := r.Objects(recorder.Query{Kind: "services", Name: "default/web"})
	request, err := http.NewRequestWithContext(
		t.Context(), http.MethodGet, pages.URL+"/"+console.RecordingPath(objects[0]), http.NoBody,
	)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "web.json")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestRecordingGuide goes from a running controller to the output that the guide shows.
func TestRecordingGuide(t *testing.T) {
	file := recordRoute(t)
	replay := func(setup func(manager.Manager) error) *converge.Report {
		t.Helper()
		// region recording-test
		scenario, err := converge.FromRecording(file, converge.Scenario{Scheme: scheme, Setup: setup})
		if err != nil {
			t.Fatal(err)
		}
		// endregion
		report, err := converge.Check(t, scenario, converge.Options{Seed: 1, Recoveries: 1000, Pairs: 100})
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	report := replay(setupRoutes())
	if report.Failure == nil {
		content, _ := os.ReadFile(file)
		t.Fatalf("the bug is not found: %s\n%s", report.Certificate, content)
	}
	failure := report.Failure.String() + report.Certificate.Recorded.String() + "\n"
	if report = replay(setupRoutes(&corev1.ConfigMap{})); report.Failure != nil {
		t.Fatalf("the correct code fails: %s", report.Failure)
	}
	showPrinted(t, "converge/recordings.md", map[string]string{
		"recording-failure": failure, "recording-certificate": report.Certificate.String() + "\n",
	})
}
