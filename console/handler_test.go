// SPDX-License-Identifier: Apache-2.0

package console_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"trueup.dev/console"
	"trueup.dev/observe"
	"trueup.dev/observe/recorder"
)

var database = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Database"}

// play passes the events of a run with one step to a recorder.
func play(r *recorder.Recorder, name string, err error) {
	run := &observe.Run{
		ID: "run-of-" + name, Controller: "database", Kind: database, Started: time.Now(),
		Object: types.NamespacedName{Namespace: "default", Name: name},
		Causes: []observe.Cause{{Type: observe.CauseObject, Verb: observe.Created, Kind: database, Count: 1}},
	}
	path := []string{"Database"}
	below := []string{"Database", "Child"}
	finished := observe.StepFinished{Run: run, Err: err, Outcome: observe.Succeeded, Duration: time.Millisecond}
	if err != nil {
		finished.Outcome = observe.Failed
	}
	outer, inner := finished, finished
	outer.Path, inner.Path = path, below
	for _, e := range []observe.Event{
		&observe.ReconcileStarted{Run: run},
		&observe.StepStarted{Run: run, Path: path},
		&observe.StepStarted{Run: run, Path: below},
		&observe.Call{
			Run: run, Path: below, Verb: observe.VerbCreate, Kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
			Object: run.Object, Err: err,
		},
		&inner,
		&outer,
		&observe.ReconcileFinished{Run: run, Err: err, Duration: 2 * time.Millisecond},
	} {
		r.Observe(nil, e) //nolint:staticcheck // the recorder ignores the context
	}
}

// serve serves a console with two objects. The path has a prefix, as on a metrics server.
func serve(t *testing.T) (*recorder.Recorder, *httptest.Server) {
	t.Helper()
	r := recorder.New(recorder.Options{})
	play(r, "good", nil)
	play(r, "broken", errors.New("exceeded <b>quota</b>"))
	mux := http.NewServeMux()
	mux.Handle("/console/", http.StripPrefix("/console", console.Handler(r)))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return r, server
}

func get(t *testing.T, url, accept string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", accept)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

func TestPages(t *testing.T) {
	_, server := serve(t)
	for _, tc := range []struct {
		name, path string
		status     int
		want       []string // in this order
		unwanted   string
	}{
		{"which objects are in trouble", "/console/", 200, []string{
			"<h1>Objects", "1 in trouble", "Failing", `href="./objects/database/default/broken"`,
			"retry with back-off", "Database.Child", "exceeded &lt;b&gt;quota&lt;/b&gt;", "default/good",
		}, "<b>quota"},
		{"without the slash", "/console", 200, []string{"<h1>Objects"}, ""},
		{"search", "/console/?q=QUOTA", 200, []string{`value="QUOTA"`, "1 match", "default/broken"}, "default/good"},
		{"a search without a match", "/console/?q=nothing", 200, []string{"No object matches"}, "default/good"},
		{"the objects of a controller", "/console/?controller=other", 200, []string{"0 match", "No object matches"}, ""},
		{"a wrong offset", "/console/?offset=x", 200, []string{"default/good"}, ""},
		{"why did it run, and which step failed", "/console/objects/database/default/broken", 200, []string{
			"default/broken", "Failed in step", "Database.Child", "exceeded &lt;b&gt;quota&lt;/b&gt;", "Why it ran",
			"the object was created", "What it did", "Child", "create ConfigMap default/broken", "run-of-broken",
		}, "<b>quota"},
		{"an unknown object", "/console/objects/database/default/other", 404, []string{"Not found"}, ""},
		{"controllers", "/console/controllers", 200, []string{`href="./controllers/database"`, "1 in trouble"}, ""},
		{"which step fails or is slow", "/console/controllers/database", 200, []string{
			"Steps", "Child", "1 of 2", "Database default/broken", "The queue is not shown", "not measured", "Why it ran",
			"Object",
		}, ""},
		{"an unknown controller", "/console/controllers/other", 404, []string{"Not found"}, ""},
		{"an unknown path", "/console/other/path", 404, []string{`href="../"`, "Not found"}, ""},
		{"style", "/console/static/style.css", 200, []string{"prefers-color-scheme: dark"}, ""},
		{"script", "/console/static/live.js", 200, []string{"EventSource"}, ""},
		{"no list of files", "/console/static/", 404, nil, "style.css"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			response, body := get(t, server.URL+tc.path, browser)
			if response.StatusCode != tc.status {
				t.Errorf("got status %d, want %d", response.StatusCode, tc.status)
			}
			rest := body
			for _, want := range tc.want {
				_, after, ok := strings.Cut(rest, want)
				if !ok {
					t.Fatalf("%q is missing, or not in this place:\n%s", want, body)
				}
				rest = after
			}
			if tc.unwanted != "" && strings.Contains(body, tc.unwanted) {
				t.Errorf("unexpected %q:\n%s", tc.unwanted, body)
			}
		})
	}
}

func TestManyObjectsHavePages(t *testing.T) {
	r, server := serve(t)
	for i := range 250 {
		play(r, fmt.Sprintf("object-%03d", i), nil)
	}
	_, body := get(t, server.URL+"/console/?controller=database&offset=100", browser)
	for _, want := range []string{
		"101 to 200 of 252", `href="?controller=database&amp;offset=200"`, `href="?controller=database&amp;offset=0"`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if count := strings.Count(body, `scope="row"`); count != 100 {
		t.Errorf("got %d objects, want 100", count)
	}
}

func TestNothingHasRunYet(t *testing.T) {
	server := httptest.NewServer(console.Handler(recorder.New(recorder.Options{})))
	defer server.Close()
	for _, path := range []string{"/", "/controllers"} {
		if _, body := get(t, server.URL+path, browser); !strings.Contains(body, "Nothing has been reconciled") {
			t.Errorf("%s:\n%s", path, body)
		}
	}
	if _, body := get(t, server.URL, "application/json"); !strings.Contains(body, `"objects": []`) {
		t.Errorf("JSON: %s", body)
	}
}

func TestJSON(t *testing.T) {
	_, server := serve(t)
	var objects console.Objects
	response, body := get(t, server.URL+"/console/?kind=databases&name=default/broken", "application/json")
	if err := json.Unmarshal([]byte(body), &objects); err != nil {
		t.Fatal(err)
	}
	header := response.Header
	if header.Get("Content-Type") != "application/json" || header.Get("Vary") != "Accept" {
		t.Errorf("headers: %v", header)
	}
	if len(objects.Objects) != 1 || objects.Objects[0].State != recorder.StateFailing || objects.Known != 2 {
		t.Errorf("objects: %s", body)
	}
	var history recorder.History
	_, body = get(t, server.URL+"/console/objects/database/default/broken", "application/json")
	if err := json.Unmarshal([]byte(body), &history); err != nil {
		t.Fatal(err)
	}
	if history.Step != "Database.Child" || len(history.History) != 1 || len(history.History[0].Steps) != 2 {
		t.Errorf("history: %s", body)
	}
	response, body = get(t, server.URL+"/console/objects/database/default/other", "application/json")
	if response.StatusCode != http.StatusNotFound || !strings.Contains(body, `"error": "not found"`) {
		t.Errorf("status %d: %s", response.StatusCode, body)
	}
}

func TestNothingIsWrittenAndHeadersAreSafe(t *testing.T) {
	_, server := serve(t)
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
		for _, path := range []string{"/console/", "/console/objects/database/default/good", "/console/x"} {
			request := httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody)
			answer := httptest.NewRecorder()
			server.Config.Handler.ServeHTTP(answer, request)
			if answer.Code != http.StatusMethodNotAllowed {
				t.Errorf("%s %s: status %d, want 405", method, path, answer.Code)
			}
		}
	}
	for _, path := range []string{"/console/", "/console/x", "/console/static/live.js"} {
		response, body := get(t, server.URL+path, browser)
		want := map[string]string{
			"Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; " +
				"img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
			"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
		}
		for name, value := range want {
			if diff := cmp.Diff(value, response.Header.Get(name)); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", path, name, diff)
			}
		}
		if strings.Contains(body, "style=\"") || strings.Contains(body, "<script>") || strings.Contains(body, " onclick") {
			t.Errorf("%s: the policy forbids inline styles and scripts:\n%s", path, body)
		}
	}
}

func TestUpdatesArriveWithoutReload(t *testing.T) {
	r, server := serve(t)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/console/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", "text/event-stream")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	event := func() string {
		var text strings.Builder
		for lines.Scan() && lines.Text() != "" {
			line, ok := strings.CutPrefix(lines.Text(), "data: ")
			if !ok {
				t.Fatalf("unexpected line %q", lines.Text())
			}
			fmt.Fprintln(&text, line)
		}
		return text.String()
	}
	first := event()
	if !strings.Contains(first, "<h1>Objects") || strings.Contains(first, "<html") ||
		strings.Contains(first, "default/new") {
		t.Errorf("first event:\n%s", first)
	}
	play(r, "new", nil)
	if second := event(); !strings.Contains(second, "default/new") {
		t.Errorf("second event:\n%s", second)
	}
}

// A controller that waits for its caches reconciles nothing, and has no objects.
func TestWhichControllerHasNotStarted(t *testing.T) {
	r, server := serve(t)
	budgets := schema.GroupVersionKind{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"}
	wait := observe.CacheWait{Controller: "website", Kind: budgets, Since: time.Now(), Err: errors.New("<forbidden>")}
	r.Observe(t.Context(), &wait)
	const want = "waits for the cache of PodDisruptionBudget.policy: &lt;forbidden&gt;"
	pages := []string{"", "controllers", "controllers/website"}
	for _, page := range pages {
		if _, body := get(t, server.URL+"/console/"+page, "text/html"); !strings.Contains(body, want) {
			t.Errorf("the page %q does not contain %q", page, want)
		}
	}
	wait.Ended = true
	r.Observe(t.Context(), &wait)
	for _, page := range pages {
		if _, body := get(t, server.URL+"/console/"+page, "text/html"); strings.Contains(body, "PodDisruptionBudget") {
			t.Errorf("the page %q names a cache that is filled", page)
		}
	}
}

// Which cluster is gone, at 3 a.m.?
func TestClusters(t *testing.T) {
	r, server := serve(t)
	if response, body := get(t, server.URL+"/console/clusters", browser); response.StatusCode != http.StatusNotFound ||
		strings.Contains(body, ">Clusters<") {
		t.Errorf("a program with one cluster has a page of clusters: %s\n%s", response.Status, body)
	}
	for name, state := range map[string]observe.ClusterState{
		"asia": observe.ClusterReady, "europe": observe.ClusterPaused, "america": observe.ClusterGone,
	} {
		r.Observe(t.Context(), &observe.ClusterChanged{Cluster: name, State: state})
	}
	for path, wants := range map[string][]string{
		"":         {`href="./clusters"`, "1 of 2 clusters not ready"},
		"clusters": {"Paused", `href="./?q=%40europe"`, "now", "Gone", "america", "Ready", "asia"},
	} {
		_, body := get(t, server.URL+"/console/"+path, browser)
		rest := body
		for _, want := range wants {
			_, after, ok := strings.Cut(rest, want)
			if !ok {
				t.Fatalf("the page %q does not contain %q in this place:\n%s", path, want, body)
			}
			rest = after
		}
	}
}

func TestWaitForTheLease(t *testing.T) {
	r, server := serve(t)
	run := &observe.Run{Controller: "database", Kind: database, Started: time.Now()}
	run.Object = types.NamespacedName{Namespace: "default", Name: "good"}
	for _, e := range []observe.Event{
		&observe.ReconcileStarted{Run: run}, &observe.Deferred{Run: run, Reason: observe.DeferLease},
		&observe.ReconcileFinished{Run: run},
	} {
		r.Observe(nil, e) //nolint:staticcheck // the recorder ignores the context
	}
	for path, want := range map[string]string{
		"": "this replica must renew its lease", "objects/database/default/good": "Waits for the lease",
	} {
		if _, body := get(t, server.URL+"/console/"+path, browser); !strings.Contains(body, want) {
			t.Errorf("the page %q does not contain %q:\n%s", path, want, body)
		}
	}
}
