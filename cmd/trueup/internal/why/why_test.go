// SPDX-License-Identifier: Apache-2.0

package why

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/cmd/trueup/internal/screen"
	"trueup.dev/console"
	"trueup.dev/observe"
	"trueup.dev/observe/recorder"
)

var (
	database  = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Database"}
	configMap = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
)

// play passes the events of a run with two steps, where the second creates a ConfigMap, to a recorder.
func play(r *recorder.Recorder, controller string, object types.NamespacedName, cause observe.Cause, err error) {
	run := &observe.Run{
		ID: "id", Controller: controller, Kind: database, Object: object, Causes: []observe.Cause{cause},
		Started: time.Now().Add(-2 * time.Minute),
	}
	root, child := []string{"Database"}, []string{"Database", "Child"}
	outcome, result := observe.Succeeded, reconcile.Result{RequeueAfter: time.Hour + 30*time.Second}
	failures := []observe.Failure{}
	if err != nil {
		outcome, result = observe.Failed, reconcile.Result{}
		failures = append(failures, observe.Failure{Step: "Database.Child", Err: err})
	}
	for _, e := range []observe.Event{
		&observe.ReconcileStarted{Run: run},
		&observe.StepStarted{Run: run, Path: root},
		&observe.StepStarted{Run: run, Path: child},
		&observe.Call{
			Run: run, Path: child, Verb: observe.VerbCreate, Kind: configMap, Object: object, Err: err,
			Duration: time.Millisecond,
		},
		&observe.StepFinished{Run: run, Path: child, Err: err, Outcome: outcome, Duration: 2 * time.Millisecond},
		&observe.StepFinished{Run: run, Path: root, Err: err, Outcome: outcome, Duration: 3 * time.Millisecond},
		&observe.ReconcileFinished{Run: run, Result: result, Err: err, Failures: failures, Duration: 4 * time.Millisecond},
	} {
		r.Observe(nil, e) //nolint:staticcheck // the recorder ignores the context
	}
}

// serve serves the console of two controllers. It requires the token "valid".
func serve(t *testing.T) *httptest.Server {
	t.Helper()
	r := recorder.New(recorder.Options{})
	orders := types.NamespacedName{Namespace: "shop", Name: "orders"}
	created := observe.Cause{Type: observe.CauseObject, Verb: observe.Created, Kind: database, Object: orders, Count: 1}
	quota := errors.New("exceeded quota\x1b[31m")
	play(r, "database", orders, created, nil)
	play(r, "database", orders, created, quota)
	play(r, "database", orders, observe.Cause{Type: observe.CauseRetry, Attempt: 1, Err: quota, Count: 1}, quota)
	play(r, "backup", types.NamespacedName{Name: "weekly"}, observe.Cause{Type: observe.CauseStartUp, Count: 1}, nil)
	pages := http.StripPrefix("/console", console.Handler(r))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer valid" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		pages.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server
}

var times = regexp.MustCompile(`\d{4}-\d\d-\d\dT\S+Z`)

func TestPrint(t *testing.T) {
	server := serve(t)
	for _, tc := range []struct {
		name    string
		options Options
		want    string
	}{
		{"why did it run, and what failed", Options{Kind: "databases", Name: "shop/orders", Runs: 2}, `
Database shop/orders  Failing  controller database
  failed in step Database.Child, 2 times in a row, first 2 min ago
    exceeded quota[31m
  3 runs: 2 failed, 0 without a change; 1 writes
  next run: retry with back-off

2 min ago  Failed  4.00 ms  TIME id
  because  retry 1 after an error: the same error
  step     Database.Child  Failed  2.00 ms
      create ConfigMap shop/orders  1.00 ms
        failed with the error above

2 min ago  Failed  4.00 ms  TIME id
  because  the object was created
  step     Database.Child  Failed  2.00 ms
      create ConfigMap shop/orders  1.00 ms
        failed with the error above

1 earlier runs are kept: see --runs
`},
		{"what did it do, and when does it run next", Options{Kind: "Database", Name: "weekly", Runs: 3}, `
Database weekly  Succeeded  controller backup
  1 runs: 0 failed, 0 without a change; 1 writes
  next run: in 58 min

2 min ago  Changed  4.00 ms  TIME id
  because  the controller started
  step     Database.Child  2.00 ms
      create ConfigMap weekly  1.00 ms
`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out bytes.Buffer
			tc.options.URL, tc.options.Token = server.URL+"/console", "valid"
			if err := Print(t.Context(), screen.New(&out), tc.options); err != nil {
				t.Fatal(err)
			}
			got := "\n" + times.ReplaceAllString(out.String(), "TIME")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
		})
	}
}

// A controller whose cache cannot be filled reconciles nothing.
func TestWhyIsNothingReconciled(t *testing.T) {
	r := recorder.New(recorder.Options{})
	budgets := schema.GroupVersionKind{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"}
	wait := observe.CacheWait{Controller: "database", Kind: budgets, Err: errors.New("poddisruptionbudgets is forbidden")}
	r.Observe(t.Context(), &wait)
	server := httptest.NewServer(console.Handler(r))
	defer server.Close()
	options := Options{Kind: "database", Name: "orders", URL: server.URL}
	err := Print(t.Context(), screen.New(&bytes.Buffer{}), options)
	const want = "controller database has not started: it waits for the cache of PodDisruptionBudget.policy: " +
		"poddisruptionbudgets is forbidden"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got error %v, want one that contains %q", err, want)
	}
	wait.Ended = true
	r.Observe(t.Context(), &wait)
	if err := Print(t.Context(), screen.New(&bytes.Buffer{}), options); strings.Contains(err.Error(), "not started") {
		t.Errorf("got error %v of a controller that has started", err)
	}
}

// A replica that is not the leader, and a controller whose workers are busy, reconcile nothing either.
func TestWhyDoesItWait(t *testing.T) {
	running := recorder.Unfinished{
		Object: recorder.Ref{Kind: "Database", Namespace: "shop", Name: "slow"},
		Since:  time.Now().Add(-2 * time.Minute), Step: "Database.Backup",
	}
	for name, tc := range map[string]struct {
		page console.Objects
		want string
	}{
		"not the leader": {
			console.Objects{Standby: true}, "this replica reconciles nothing: it is not elected as the leader",
		},
		"busy": {
			console.Objects{Occupied: map[string]console.Occupied{
				"database": {Workers: 1, Running: []recorder.Unfinished{running}},
			}},
			"waits for a worker: all of controller database (MaxConcurrentReconciles: 1) are busy:\n" +
				"  Database shop/slow has been running for 2m0s in step Database.Backup",
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if err := json.NewEncoder(w).Encode(tc.page); err != nil {
					t.Error(err)
				}
			}))
			defer server.Close()
			err := Print(t.Context(), screen.New(&bytes.Buffer{}), Options{Kind: "database", Name: "orders", URL: server.URL})
			if err == nil || !strings.HasSuffix(err.Error(), "\n"+tc.want) {
				t.Errorf("got error %v, want one that ends with %q", err, tc.want)
			}
		})
	}
}

func TestPrint_errors(t *testing.T) {
	server := serve(t)
	for _, tc := range []struct {
		name    string
		options Options
		want    string
	}{
		{
			"unknown object",
			Options{Kind: "database", Name: "other", Token: "valid"},
			"the controllers at " + server.URL + "/console/ know 2 objects",
		},
		{"no token", Options{Kind: "database", Name: "orders"}, "401 Unauthorized"},
		{
			"another page",
			Options{Kind: "database", Name: "orders", Token: "valid", URL: server.URL + "/x"},
			"is this the URL of a console?",
		},
		{"no URL", Options{URL: "localhost:8080"}, `--url: must start with http:// or https:// and a host, got "localhost:8080"`},
		{"no server", Options{URL: "http://127.0.0.1:1"}, "is the controller running, and --url right?"},
		{"no certificates", Options{URL: "https://127.0.0.1:1", CAFile: "why_test.go"}, "why_test.go has no certificates in PEM format"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.options.URL == "" {
				tc.options.URL = server.URL + "/console/"
			}
			err := Print(t.Context(), screen.New(&bytes.Buffer{}), tc.options)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want one that contains %q", err, tc.want)
			}
		})
	}
}
