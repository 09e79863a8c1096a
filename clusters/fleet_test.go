// SPDX-License-Identifier: Apache-2.0

package clusters_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/clusters"
	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/internal/testkit/await"
	"trueup.dev/observe"
	"trueup.dev/observe/recorder"
)

func TestNew_problems(t *testing.T) {
	_, err := clusters.New(nil, clusters.Options{Workers: -1, WorkersOfCluster: -2, Timeout: -3})
	want := `clusters.Options: SetUp is required
clusters.Options: Workers must not be negative, got -1
clusters.Options: WorkersOfCluster must not be negative, got -2
clusters.Options: Timeout must not be negative, got -3ns
clusters.New: the manager is required`
	if err == nil || err.Error() != want {
		t.Errorf("error = %v, want:\n%s", err, want)
	}
}

// TestFleet runs the controller of the example in three clusters. They have objects of the same names. One leaves and
// comes back, and one is added while the manager runs.
func TestFleet(t *testing.T) {
	testFleet(t, inMemory)
}

func testFleet(t *testing.T, start func(testing.TB, string) *api) {
	t.Helper()
	a, b, c := start(t, "a"), start(t, "b"), start(t, "c")
	for _, api := range []*api{a, b, c} {
		api.add("same")
	}
	lines := &logLines{}
	p := run(t, a, clusters.Options{SetUp: websites(t)}, func(o *ctrl.Options) { o.Logger = lines.logger() })
	records := recorder.New(recorder.Options{})
	observe.Of(p.mgr).Add(records)

	a.engage(p.Fleet)
	connected := b.engage(p.Fleet)
	a.reconciled("same")
	b.reconciled("same")
	c.engage(p.Fleet) // while the others run
	c.reconciled("same")
	if diff := cmp.Diff([]string{"a", "b", "c"}, p.Names()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Website@a", "Website@b", "Website@c"}, observe.Of(p.mgr).Controllers()); diff != "" {
		t.Errorf("observed controllers (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"Website@a": 1, "Website@b": 1, "Website@c": 1}, recorded(records)); diff != "" {
		t.Errorf("recorded objects by controller (-want +got):\n%s", diff)
	}
	for _, name := range p.Names() {
		p.ready(t, name)
		if !lines.has(`"cluster"="` + name + `"`) {
			t.Errorf("no log line has the cluster %q", name)
		}
	}

	connected.leave()
	await.Nil(t, timeout, func() error {
		if diff := cmp.Diff([]string{"Website@a", "Website@c"}, observe.Of(p.mgr).Controllers()); diff != "" {
			return fmt.Errorf("observed controllers (-want +got):\n%s", diff)
		}
		return nil
	})
	if diff := cmp.Diff(map[string]int{"Website@a": 1, "Website@c": 1}, recorded(records)); diff != "" {
		t.Errorf("recorded objects after a cluster left (-want +got):\n%s", diff)
	}
	states := map[string]observe.ClusterState{}
	for _, c := range records.Clusters() {
		states[c.Name] = c.State
	}
	want := map[string]observe.ClusterState{
		"a": observe.ClusterReady, "b": observe.ClusterGone, "c": observe.ClusterReady,
	}
	if diff := cmp.Diff(want, states); diff != "" {
		t.Errorf("recorded clusters after a cluster left (-want +got):\n%s", diff)
	}
	if _, err := p.Get(t.Context(), "b"); !errors.Is(err, clusters.ErrNotEngaged) {
		t.Errorf("error of Get after a cluster left = %v", err)
	}
	b.add("missed")
	a.add("other")
	a.reconciled("other")
	if err := b.isReconciled("missed"); err == nil {
		t.Error("an object of a cluster that left was reconciled")
	}

	b.engage(p.Fleet)
	b.reconciled("missed")
	b.add("new")
	b.reconciled("new")
}

func recorded(r *recorder.Recorder) map[string]int {
	found := map[string]int{}
	objects, _ := r.Objects(recorder.Query{Name: "same"})
	for _, o := range objects {
		found[o.Controller]++
	}
	return found
}

type logLines struct {
	mu    sync.Mutex
	lines []string
}

func (l *logLines) logger() logr.Logger { return funcr.New(l.add, funcr.Options{}) }

func (l *logLines) add(prefix, args string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, prefix+" "+args)
}

func (l *logLines) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if strings.Contains(line, text) {
			return true
		}
	}
	return false
}

// connections are the goroutines of HTTP connections, which clients keep.
var connections = []goleak.Option{
	goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
	goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
	goleak.IgnoreAnyFunction("net/http.(*conn).serve"),
	goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*ClientConn).readLoop"),
}

// TestFleet_leavesNothing engages a cluster and lets it leave, with requests that are delayed.
func TestFleet_leavesNothing(t *testing.T) {
	a, b := inMemory(t, "a"), inMemory(t, "b")
	a.add("one")
	b.add("one")
	p := run(t, a, clusters.Options{SetUp: websites(t)})
	a.engage(p.Fleet)
	a.reconciled("one")
	b.engage(p.Fleet).leave() // what is kept once
	gone := func() error {
		if names := p.Names(); len(names) != 1 {
			return fmt.Errorf("engaged clusters: %q", names)
		}
		if left := clusters.Left(p.Fleet, "b"); left != "" {
			return errors.New(left)
		}
		return nil
	}
	await.Nil(t, timeout, gone)
	before := goleak.IgnoreCurrent()
	for range 3 {
		kept := func() func() bool {
			connected := b.engage(p.Fleet)
			p.ready(t, "b")
			b.reconciled("one")
			defer connected.leave()
			return clusters.Kept(p.Fleet, "b")
		}()
		await.Nil(t, timeout, gone)
		// The runtime keeps some stopped timers, with the contexts of requests, until they would have ended.
		await.Nil(t, 2*time.Minute, func() error {
			if runtime.GC(); kept() {
				return errors.New("a cluster that left is still in memory")
			}
			return nil
		})
	}
	if err := goleak.Find(append(connections, before)...); err != nil {
		t.Error(err)
	}
	if engaged := apitest.Counted(t, "trueup_clusters", nil); engaged != 1 {
		t.Errorf("trueup_clusters = %v in sum, want 1", engaged)
	}
}

func TestFleet_Engage_problems(t *testing.T) {
	a := inMemory(t, "a")
	var setUp func(ctx context.Context, mgr ctrl.Manager) error
	p := run(t, a, clusters.Options{SetUp: func(ctx context.Context, mgr ctrl.Manager) error { return setUp(ctx, mgr) }})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tc := range []struct {
		reason, name string
		ctx          context.Context
		without      bool
		setUp        func(ctx context.Context, mgr ctrl.Manager) error
		want         string
	}{
		{reason: "no name", want: `engage cluster "": the name of a cluster must not be empty`},
		{reason: "a space", name: "a b", want: "and begin and end with a letter or a digit, got \"a b\""},
		{reason: "a slash at the end", name: "a/", want: "and begin and end with a letter or a digit, got \"a/\""},
		{reason: "too long", name: strings.Repeat("a", 508), want: "must have at most 507 bytes, got 508"},
		{reason: "no cluster", name: "x", without: true, want: "the cluster is required"},
		{reason: "the context has ended", name: "x", ctx: ended, want: `engage cluster "x": context canceled`},
		{
			reason: "SetUp fails", name: "x", want: `engage cluster "x": no luck`,
			setUp: func(context.Context, ctrl.Manager) error { return errors.New("no luck") },
		},
		{
			reason: "SetUp panics", name: "x", want: `engage cluster "x": SetUp panicked: no luck (in `,
			setUp: func(context.Context, ctrl.Manager) error { panic("no luck") },
		},
		{
			reason: "SetUp does nothing", name: "x", want: "SetUp must set up a controller with the manager that it gets",
			setUp: func(context.Context, ctrl.Manager) error { return nil },
		},
		{
			reason: "SetUp starts the manager", name: "x", want: "the manager of one cluster cannot be started",
			setUp: func(ctx context.Context, mgr ctrl.Manager) error { return mgr.Start(ctx) },
		},
		{
			reason: "two controllers of one name", name: "x", want: `two controllers of SetUp have the name "website"`,
			setUp: func(_ context.Context, mgr ctrl.Manager) error {
				return errors.Join(plain(mgr, doNothing), plain(mgr, doNothing))
			},
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			setUp = tc.setUp
			ctx, cl := a.connect()
			if tc.ctx != nil {
				ctx = tc.ctx
			}
			var err error
			if tc.without {
				err = p.Engage(ctx, tc.name, nil)
			} else {
				err = p.Engage(ctx, tc.name, cl)
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v, want %q", err, tc.want)
			}
			if names := p.Names(); len(names) != 0 {
				t.Errorf("engaged clusters: %q", names)
			}
		})
	}

	setUp = func(_ context.Context, mgr ctrl.Manager) error { return plain(mgr, doNothing) }
	connected := a.engage(p.Fleet)
	ctx, again := a.connect()
	err := p.Engage(ctx, "a", again)
	if want := `engage cluster "a": it is engaged, and the context of that has not ended`; err == nil || err.Error() != want {
		t.Errorf("error of a second cluster of the name = %v, want %s", err, want)
	}
	connected.leave()
	if err := p.Engage(ctx, "a", again); err != nil {
		t.Errorf("error after the first has left = %v", err)
	}
	p.ready(t, "a")
}

func doNothing(context.Context, reconcile.Request) (reconcile.Result, error) {
	return reconcile.Result{}, nil
}

// plain sets up a controller without reconcilers of this module.
func plain(mgr ctrl.Manager, reconciler reconcile.Func) error {
	return ctrl.NewControllerManagedBy(mgr).For(&websitev1.Website{}).Complete(reconciler)
}

// TestFleet_Get is how a reconciler of one cluster reaches another one.
func TestFleet_Get(t *testing.T) {
	a := inMemory(t, "a")
	p := run(t, a, clusters.Options{SetUp: websites(t)})
	engaged := a.engage(p.Fleet)
	if got, err := p.Get(t.Context(), "a"); err != nil || got != engaged {
		t.Errorf("Get = %v, %v, want the engaged cluster", got, err)
	}
	if got, err := p.Get(t.Context(), ""); err != nil || got != p.mgr {
		t.Errorf("Get without a name = %v, %v, want the cluster of the manager", got, err)
	}
	if _, err := p.Get(t.Context(), "x"); !errors.Is(err, clusters.ErrNotEngaged) {
		t.Errorf("error of an unknown cluster = %v", err)
	}
}

// TestFleet_IndexField adds an index before a cluster is engaged, and another one afterwards.
func TestFleet_IndexField(t *testing.T) {
	a, b := inMemory(t, "a"), inMemory(t, "b")
	p := run(t, a, clusters.Options{SetUp: websites(t)})
	for _, api := range []*api{a, b} {
		api.add("one")
		api.add("two")
	}
	index := func(field string, of func(*websitev1.Website) string) {
		t.Helper()
		for range 2 { // it may be repeated
			err := p.IndexField(t.Context(), &websitev1.Website{}, field, func(obj client.Object) []string {
				return []string{of(obj.(*websitev1.Website))}
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	index("domain", func(site *websitev1.Website) string { return site.Spec.Domain })
	connected := map[string]*connection{"a": a.engage(p.Fleet)}
	p.ready(t, "a")
	index("title", func(site *websitev1.Website) string { return site.Spec.Pages[0].Title })
	connected["b"] = b.engage(p.Fleet)
	p.ready(t, "b")
	for name, cl := range connected {
		for _, field := range []string{"domain", "title"} {
			found := &websitev1.WebsiteList{}
			err := cl.GetClient().List(t.Context(), found, client.MatchingFields{field: "two." + name + ".example"})
			if err != nil || len(found.Items) != 1 || found.Items[0].Name != "two" {
				t.Errorf("cluster %s by %s: %d sites, %v, want two", name, field, len(found.Items), err)
			}
		}
	}
}

// TestFleet_unreachable engages a cluster that accepts connections and never answers.
func TestFleet_unreachable(t *testing.T) {
	a := inMemory(t, "a")
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	p := run(t, a, clusters.Options{SetUp: websites(t), Workers: 1})
	connected, dead := connect(t, &rest.Config{Host: "http://" + listener.Addr().String()}, a.scheme)
	ctx, cancel := context.WithCancel(connected)
	defer cancel()
	started := time.Now()
	if err := p.Engage(ctx, "dead", dead); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(started); took > timeout/2 {
		t.Errorf("Engage took %s", took)
	}
	a.engage(p.Fleet)
	a.add("one")
	a.reconciled("one")
	if err := p.Ready("dead"); err == nil || !strings.Contains(err.Error(), `cluster "dead": waits for its caches`) {
		t.Errorf("readiness of the unreachable cluster: %v", err)
	}
	cancel()
	await.Nil(t, timeout, func() error {
		if left := clusters.Left(p.Fleet, "dead"); left != "" {
			return errors.New(left)
		}
		return nil
	})
}

// TestFleet_hanging has a cluster whose API no longer answers while its objects are reconciled.
func TestFleet_hanging(t *testing.T) {
	a, b := inMemory(t, "a"), inMemory(t, "b")
	p := run(t, a, clusters.Options{SetUp: websites(t), Workers: 2, Timeout: 2 * time.Second})
	a.engage(p.Fleet)
	b.engage(p.Fleet)
	p.ready(t, "a")
	p.ready(t, "b")
	b.hangs.Store(true)
	for i := range 5 {
		b.add(fmt.Sprintf("site-%d", i))
	}
	await.Nil(t, timeout, func() error {
		if err := p.Ready("b"); err == nil || !strings.Contains(err.Error(), "reconciles do not end within 2s") {
			return fmt.Errorf("readiness of the cluster that hangs: %w", err)
		}
		return nil
	})
	if paused := apitest.Counted(t, "trueup_clusters", map[string]string{"state": "Paused"}); paused != 1 {
		t.Errorf("trueup_clusters of paused clusters = %v, want 1", paused)
	}
	a.add("one")
	a.reconciled("one")
	b.hangs.Store(false)
	for i := range 5 {
		b.reconciled(fmt.Sprintf("site-%d", i))
	}
	p.ready(t, "b")
}

// TestFleet_runnables checks when what SetUp adds to its manager runs, and its readiness checks.
func TestFleet_runnables(t *testing.T) {
	a := inMemory(t, "a")
	var running, stopped sync.WaitGroup
	running.Add(2)
	stopped.Add(2)
	runnable := manager.RunnableFunc(func(ctx context.Context) error {
		if got := clusters.Name(ctx); got != "a" {
			t.Errorf("name of the cluster = %q", got)
		}
		running.Done()
		<-ctx.Done()
		stopped.Done()
		return nil
	})
	var part ctrl.Manager
	failing := errors.New("not yet")
	p := run(t, a, clusters.Options{SetUp: func(_ context.Context, mgr ctrl.Manager) error {
		part = mgr
		return errors.Join(plain(mgr, doNothing), mgr.Add(runnable),
			mgr.AddReadyzCheck("mine", func(*http.Request) error { return failing }))
	}})
	connected := a.engage(p.Fleet)
	await.Nil(t, timeout, func() error {
		if err := p.Ready("a"); err == nil || err.Error() != `cluster "a": check "mine": not yet` {
			return fmt.Errorf("readiness: %w", err)
		}
		return nil
	})
	if err := part.Add(runnable); err != nil { // while the cluster runs
		t.Fatal(err)
	}
	running.Wait()
	connected.leave()
	stopped.Wait()
}
