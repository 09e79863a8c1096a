// SPDX-License-Identifier: Apache-2.0

package console_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/console"
	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/observe"
	"trueup.dev/observe/recorder"
	"trueup.dev/sandbox"
	_ "trueup.dev/sandbox/memory"
)

func TestMain(m *testing.M) { apitest.Main(m) }

// newManager returns a manager on the API in memory, and the address of its metrics server.
func newManager(t *testing.T, metrics metricsserver.Options) (manager.Manager, string) {
	t.Helper()
	s, err := sandbox.Start(t.Context(), sandbox.Options{Backend: sandbox.Memory})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	metrics.BindAddress = freeAddress(t)
	mgr, err := ctrl.NewManager(s.RESTConfig(), ctrl.Options{Metrics: metrics, Logger: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	return mgr, metrics.BindAddress
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// run starts a manager, and stops it at the end of the test. Streams must not delay that.
func run(t *testing.T, mgr manager.Manager) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := mgr.Start(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		started := time.Now()
		cancel()
		running.Wait()
		if took := time.Since(started); took > 20*time.Second {
			t.Errorf("the manager stopped after %v", took)
		}
	})
}

// eventually returns the body of a page as soon as it satisfies a condition.
func eventually(t *testing.T, url, accept, authorization string, done func(status int, body string) bool) string {
	t.Helper()
	last := ""
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Accept", accept)
		request.Header.Set("Authorization", authorization)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			last = err.Error() // the server has not started
			continue
		}
		var body strings.Builder
		_ = response.Write(&body)
		response.Body.Close()
		if last = body.String(); done(response.StatusCode, last) {
			return last
		}
	}
	t.Fatalf("%s: condition not met, last answer:\n%s", url, last)
	return ""
}

// copier copies ConfigMaps with a password to Secrets with the same name, and fails without a password.
func addCopier(t *testing.T, mgr manager.Manager) {
	t.Helper()
	c := observe.Client(mgr)
	reconcileConfigMap := reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		var from corev1.ConfigMap
		if err := c.Get(ctx, request.NamespacedName, &from); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		if from.Data["password"] == "" {
			return reconcile.Result{}, errors.New("data.password is required")
		}
		to := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: from.Namespace, Name: from.Name}}
		if err := c.Get(ctx, client.ObjectKeyFromObject(to), to); client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, err
		}
		if string(to.Data["password"]) == from.Data["password"] {
			return reconcile.Result{}, nil
		}
		to.Data = map[string][]byte{"password": []byte(from.Data["password"])}
		if to.ResourceVersion == "" {
			return reconcile.Result{}, c.Create(ctx, to)
		}
		return reconcile.Result{}, c.Update(ctx, to)
	})
	skipNames := true
	bldr := ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).Named("copier").
		WithOptions(controller.Options{SkipNameValidation: &skipNames})
	if err := observe.Controller(bldr).Complete(reconcileConfigMap); err != nil {
		t.Fatal(err)
	}
}

// runCopier runs the copier with a console, and returns a client and the address of the metrics server.
func runCopier(t *testing.T, options console.Options) (c client.Client, address string) {
	t.Helper()
	mgr, address := newManager(t, metricsserver.Options{})
	if err := console.AddToManager(mgr, options); err != nil {
		t.Fatal(err)
	}
	addCopier(t, mgr)
	run(t, mgr)
	c, err := client.New(mgr.GetConfig(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c, address
}

// follower is a manager that is never elected.
type follower struct{ manager.Manager }

func (follower) Elected() <-chan struct{} { return make(chan struct{}) }

func TestIsThisReplicaTheLeader(t *testing.T) {
	for name, tc := range map[string]struct {
		as   func(manager.Manager) manager.Manager
		want bool
	}{
		"the leader":     {func(mgr manager.Manager) manager.Manager { return mgr }, false},
		"not the leader": {func(mgr manager.Manager) manager.Manager { return follower{mgr} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			mgr, address := newManager(t, metricsserver.Options{})
			if err := console.AddToManager(tc.as(mgr), console.Options{}); err != nil {
				t.Fatal(err)
			}
			run(t, mgr)
			eventually(t, "http://"+address+"/console/", "application/json", "", func(_ int, body string) bool {
				return strings.Contains(body, `"known": 0`) && strings.Contains(body, `"standby": true`) == tc.want
			})
			eventually(t, "http://"+address+"/console/", browser, "", func(_ int, body string) bool {
				return strings.Contains(body, "it is not elected as the leader") == tc.want
			})
		})
	}
}

func TestWhatWroteThisFieldAndIsTheSecretHidden(t *testing.T) {
	c, address := runCopier(t, console.Options{
		Recorder: recorder.New(recorder.Options{Mask: observe.Mask{Paths: []string{"data.password"}}}),
	})
	from := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db"}}
	if err := c.Create(t.Context(), from); err != nil {
		t.Fatal(err)
	}
	page := "http://" + address + "/console/objects/copier/default/db"
	eventually(t, page, browser, "", func(_ int, body string) bool {
		return strings.Contains(body, "Failing") && strings.Contains(body, "data.password is required")
	})
	for _, password := range []string{"first-password", "second-password"} {
		from.Data = map[string]string{"password": password, "size": "for-" + password}
		if err := c.Update(t.Context(), from); err != nil {
			t.Fatal(err)
		}
		eventually(t, page, browser, "", func(_ int, body string) bool {
			return strings.Contains(body, "for-"+password) && !strings.Contains(body, "Failing")
		})
	}
	var history recorder.History
	body := eventually(t, page, "application/json", "", func(_ int, body string) bool {
		history = recorder.History{}
		start, end := strings.Index(body, "{"), strings.LastIndex(body, "}")
		return start > 0 && json.Unmarshal([]byte(body[start:end+1]), &history) == nil && updates(history) != nil
	})
	for _, hidden := range []string{`\"first-password`, `\"second-password`, "Zmlyc3Q"} { // the last is base64
		if strings.Contains(body, hidden) {
			t.Errorf("%s is visible:\n%s", hidden, body)
		}
	}
	run := updates(history)
	cause, call := run.Causes[len(run.Causes)-1], run.Calls[len(run.Calls)-1]
	wantCause := []observe.Change{
		{Path: "data[password]", Before: "•••", After: "•••"},
		{Path: "data[size]", Before: `"for-first-password"`, After: `"for-second-password"`},
	}
	if diff := cmp.Diff(wantCause, cause.Changes); diff != "" {
		t.Errorf("cause (-want +got):\n%s", diff)
	}
	wantCall := []observe.Change{{Path: "data[password]", Before: "•••", After: "•••"}}
	if diff := cmp.Diff(wantCall, call.Changes); diff != "" {
		t.Errorf("call (-want +got):\n%s", diff)
	}
}

// updates returns the run that updates the Secret.
func updates(history recorder.History) *recorder.Run {
	for i, run := range history.History {
		if run.Outcome == recorder.Changed && len(run.Calls) > 0 && run.Calls[len(run.Calls)-1].Verb == "update" {
			return &history.History[i]
		}
	}
	return nil
}

func TestFilterOfTheMetricsServerProtectsTheConsole(t *testing.T) {
	mgr, address := newManager(t, metricsserver.Options{
		FilterProvider: func(*rest.Config, *http.Client) (metricsserver.Filter, error) {
			return func(_ logr.Logger, next http.Handler) (http.Handler, error) {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Header.Get("Authorization") != "Bearer valid" {
						w.WriteHeader(http.StatusUnauthorized)
						return
					}
					next.ServeHTTP(w, r)
				}), nil
			}, nil
		},
	})
	if err := console.AddToManager(mgr, console.Options{Path: "/debug/console/"}); err != nil {
		t.Fatal(err)
	}
	run(t, mgr)
	page := "http://" + address + "/debug/console/"
	for _, path := range []string{"", "controllers", "static/style.css", "objects/a/b/c"} {
		eventually(t, page+path, browser, "", func(status int, _ string) bool { return status == http.StatusUnauthorized })
	}
	eventually(t, page, browser, "Bearer valid", func(status int, body string) bool {
		return status == http.StatusOK && strings.Contains(body, "Nothing has been reconciled")
	})
}

func TestConsoleOnAnAddressOfItsOwn(t *testing.T) {
	mgr, _ := newManager(t, metricsserver.Options{})
	address := freeAddress(t)
	if err := console.AddToManager(mgr, console.Options{Address: address}); err != nil {
		t.Fatal(err)
	}
	run(t, mgr)
	eventually(t, "http://"+address, browser, "", func(status int, body string) bool {
		return status == http.StatusOK && strings.Contains(body, "<h1>Objects")
	})
}

// The metrics server waits for its connections when it stops, and run checks how long that takes.
func TestOpenPageDoesNotDelayTheEnd(t *testing.T) {
	mgr, address := newManager(t, metricsserver.Options{})
	if err := console.AddToManager(mgr, console.Options{}); err != nil {
		t.Fatal(err)
	}
	run(t, mgr)
	eventually(t, "http://"+address+"/console/", browser, "", func(status int, _ string) bool { return status == 200 })
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/console/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", "text/event-stream")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	if content := response.Header.Get("Content-Type"); content != "text/event-stream" {
		t.Errorf("content type %q", content)
	}
}

func TestWrongOptions(t *testing.T) {
	mgr, _ := newManager(t, metricsserver.Options{})
	for want, options := range map[string]console.Options{
		`console: address: "0.0.0.0" must be a loopback address such as 127.0.0.1`: {Address: "0.0.0.0:80"},
		`console: address: "" must be a loopback address such as 127.0.0.1`:        {Address: ":80"},
		`console: address: address x: missing port in address`:                     {Address: "x"},
		`console: path "/" must start with a slash and have a name`:                {Path: "/"},
		`console: path "console" must start with a slash and have a name`:          {Path: "console"},
	} {
		if err := console.AddToManager(mgr, options); err == nil || err.Error() != want {
			t.Errorf("%+v: got error %v, want %s", options, err, want)
		}
	}
}
