// SPDX-License-Identifier: Apache-2.0

package shards

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var kinds = []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}}

func newShard(t *testing.T) *Shard {
	t.Helper()
	shard, err := New(Options{Ring: "ring", Shard: "a", Namespace: "default", Kinds: kinds})
	if err != nil {
		t.Fatal(err)
	}
	return shard
}

func TestNew(t *testing.T) {
	long := strings.Repeat("x", 64)
	for name, tc := range map[string]struct {
		options Options
		want    []string
	}{
		"valid": {options: Options{Ring: "ring.example", Shard: "pod-0", Namespace: "default", Kinds: kinds}},
		"all missing": {
			options: Options{Shard: "pod-0"},
			want: []string{
				"Options.Ring is required", "Options.Namespace is required outside of a pod", "Options.Kinds is required",
			},
		},
		"too long": {
			options: Options{Ring: long, Shard: long, Namespace: "default", Kinds: kinds},
			want: []string{
				"Options.Ring must have at most 63 characters, got 64", "Options.Shard must have at most 63 characters, got 64",
			},
		},
		"not names": {
			options: Options{Ring: "my ring", Shard: "Pod", Namespace: "a.b", Kinds: []client.Object{(*corev1.Pod)(nil)}},
			want: []string{
				`Options.Ring must be valid, got "my ring": `, `Options.Shard must be valid, got "Pod": `,
				`Options.Namespace must be valid, got "a.b": `, "Options.Kinds must not have a nil object at index 0",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(tc.options)
			compareProblems(t, tc.want, err)
		})
	}
}

// compareProblems compares the lines of an error below its first one with how they begin.
func compareProblems(t *testing.T, want []string, err error) {
	t.Helper()
	if len(want) == 0 {
		if err != nil {
			t.Error(err)
		}
		return
	}
	if err == nil {
		t.Fatalf("no error, want %q", want)
	}
	lines := strings.Split(err.Error(), "\n")[1:]
	for i := range min(len(lines), len(want)) {
		if strings.HasPrefix(lines[i], want[i]) {
			lines[i] = want[i]
		}
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("unexpected problems (-want +got):\n%s", diff)
	}
}

func TestNew_DefaultsToTheHostName(t *testing.T) {
	shard, err := New(Options{Ring: "ring", Namespace: "default", Kinds: kinds})
	if err != nil {
		t.Skip("the name of this host is not the name of an object:", err)
	}
	if shard.Name() == "" {
		t.Error("the shard has no name")
	}
}

func TestShard_ManagerOptions_Problems(t *testing.T) {
	other := &resourcelock.LeaseLock{}
	for name, tc := range map[string]struct {
		config  *rest.Config
		options ctrl.Options
		want    []string
	}{
		"another lock": {
			config:  &rest.Config{},
			options: ctrl.Options{LeaderElection: true, LeaderElectionResourceLockInterface: other},
			want:    []string{"LeaderElectionResourceLockInterface must be nil: "},
		},
		"several": {
			options: ctrl.Options{
				LeaderElection: true, LeaderElectionID: "website", Scheme: runtime.NewScheme(),
				Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{"a": {LabelSelector: labels.Everything()}}},
			},
			want: []string{
				"LeaderElection must be false: ", "the REST config is required",
				`Cache.DefaultNamespaces["a"].LabelSelector must be nil: `, "Options.Kinds[0]: no kind is registered",
				"Options.Kinds[1]: no kind is registered",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newShard(t).ManagerOptions(tc.config, tc.options)
			compareProblems(t, tc.want, err)
		})
	}
}

func TestShard_ManagerOptions_Cache(t *testing.T) {
	blue := labels.SelectorFromSet(labels.Set{"team": "blue"})
	const ours = "shard.alpha.sharding.timebertt.dev/ring=a"
	for name, tc := range map[string]struct {
		cache cache.Options
		// want are the selectors of kinds, and of kinds in namespaces.
		want map[string]string
	}{
		"plain": {want: map[string]string{"ConfigMap": ours, "Secret": ours}},
		"narrower": {
			cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
				&corev1.Secret{}: {Label: blue, Namespaces: map[string]cache.Config{"x": {LabelSelector: blue}, "y": {}}},
				&corev1.Pod{}:    {},
			}},
			want: map[string]string{
				"ConfigMap": ours, "Secret": ours + ",team=blue", "Secret in x": ours + ",team=blue", "Secret in y": "", "Pod": "",
			},
		},
		"narrower by default": {
			cache: cache.Options{DefaultLabelSelector: blue},
			want:  map[string]string{"ConfigMap": ours + ",team=blue", "Secret": ours + ",team=blue"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			options, err := newShard(t).ManagerOptions(&rest.Config{}, ctrl.Options{Cache: tc.cache})
			if err != nil {
				t.Fatal(err)
			}
			got, text := map[string]string{}, func(s labels.Selector) string {
				if s == nil {
					return ""
				}
				return s.String()
			}
			for kind, of := range options.Cache.ByObject {
				name := strings.TrimPrefix(fmt.Sprintf("%T", kind), "*v1.")
				got[name] = text(of.Label)
				for namespace, in := range of.Namespaces {
					got[name+" in "+namespace] = text(in.LabelSelector)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("unexpected selectors (-want +got):\n%s", diff)
			}
			if !options.LeaderElection || !options.LeaderElectionReleaseOnCancel {
				t.Error("the manager does not hold and release the Lease")
			}
			if id := options.LeaderElectionResourceLockInterface.Identity(); id != "a" {
				t.Errorf("the holder of the Lease is %q", id)
			}
		})
	}
}

func assigned(to string, drained bool) *corev1.ConfigMap {
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "x", Labels: map[string]string{"other": "label"},
	}}
	if to != "" {
		obj.Labels[ShardLabel("ring")] = to
	}
	if drained {
		obj.Labels[DrainLabel("ring")] = "true"
	}
	return obj
}

func TestShard_Reconciler(t *testing.T) {
	conflict := interceptor.Funcs{Get: func(
		ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
	) error {
		err := c.Get(ctx, key, obj, opts...)
		obj.SetResourceVersion("1") // an old version
		return err
	}}
	for name, tc := range map[string]struct {
		object *corev1.ConfigMap
		lapsed bool
		faults interceptor.Funcs
		// reconciles reports whether the user's reconciler is called.
		reconciles bool
		wantLabels []string
		want       reconcile.Result
	}{
		"ours": {
			object: assigned("a", false), reconciles: true, wantLabels: []string{"other", ShardLabel("ring")},
			want: reconcile.Result{RequeueAfter: time.Minute},
		},
		"deleted":      {},
		"another's":    {object: assigned("b", false), wantLabels: []string{"other", ShardLabel("ring")}},
		"not assigned": {object: assigned("", false), wantLabels: []string{"other"}},
		"drained":      {object: assigned("a", true), wantLabels: []string{"other"}},
		"another's drain": {
			object: assigned("b", true), wantLabels: []string{DrainLabel("ring"), "other", ShardLabel("ring")},
		},
		"lapsed": {
			object: assigned("a", true), lapsed: true,
			wantLabels: []string{DrainLabel("ring"), "other", ShardLabel("ring")},
			want:       reconcile.Result{RequeueAfter: time.Second},
		},
		"drained, with an outdated cache": {
			object: assigned("a", true), faults: conflict,
			wantLabels: []string{DrainLabel("ring"), "other", ShardLabel("ring")},
			want:       reconcile.Result{RequeueAfter: time.Second},
		},
	} {
		t.Run(name, func(t *testing.T) {
			shard, builder := newShard(t), fake.NewClientBuilder()
			if tc.object != nil {
				builder.WithObjects(tc.object)
			}
			if tc.lapsed {
				renew(t, shard, resourcelock.LeaderElectionRecord{}) // released
			}
			stored := builder.Build()
			called := false
			r := shard.Reconciler(interceptor.NewClient(stored, tc.faults), &corev1.ConfigMap{}, reconcile.Func(
				func(context.Context, reconcile.Request) (reconcile.Result, error) {
					called = true
					return reconcile.Result{RequeueAfter: time.Minute}, nil
				}))
			key := client.ObjectKeyFromObject(assigned("", false))
			got, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("unexpected result (-want +got):\n%s", diff)
			}
			if called != tc.reconciles {
				t.Errorf("reconciler called: %v, want %v", called, tc.reconciles)
			}
			after := &corev1.ConfigMap{}
			if err := stored.Get(t.Context(), key, after); client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.wantLabels, slices.Sorted(maps.Keys(after.Labels))); diff != "" {
				t.Errorf("unexpected labels (-want +got):\n%s", diff)
			}
		})
	}
}

func TestShard_Predicate(t *testing.T) {
	for name, tc := range map[string]struct {
		passes  bool
		drained bool
		want    bool
	}{
		"passes":                 {passes: true, want: true},
		"is held back":           {},
		"is drained":             {drained: true, want: true},
		"is drained, and passes": {drained: true, passes: true, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			p := newShard(t).Predicate(predicate.NewPredicateFuncs(func(client.Object) bool {
				calls++
				return tc.passes
			}))
			obj := assigned("a", tc.drained)
			for event, got := range map[string]bool{
				"create": p.Create(event.CreateEvent{Object: obj}),
				"update": p.Update(event.UpdateEvent{ObjectOld: assigned("a", false), ObjectNew: obj}),
			} {
				if got != tc.want {
					t.Errorf("%s passes: %v, want %v", event, got, tc.want)
				}
			}
			if calls != 2 {
				t.Errorf("the predicate was called %d times for 2 events", calls)
			}
			if p.Delete(event.DeleteEvent{Object: obj}) != tc.passes || p.Generic(event.GenericEvent{Object: obj}) != tc.passes {
				t.Error("the drain label lets a deletion or a generic event pass")
			}
		})
	}
}

// sender is a transport that counts the requests.
type sender struct{ sent []string }

func (s *sender) RoundTrip(req *http.Request) (*http.Response, error) {
	s.sent = append(s.sent, req.Method)
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(""))}, nil
}

// stored is a lock that stores everything.
type stored struct{ resourcelock.Interface }

func (*stored) Identity() string { return "a" }
func (*stored) Describe() string { return "ops/a" }

func (*stored) Update(context.Context, resourcelock.LeaderElectionRecord) error { return nil }

func renew(t *testing.T, shard *Shard, record resourcelock.LeaderElectionRecord) {
	t.Helper()
	if err := shard.hold(&stored{}, logr.Discard()).Update(t.Context(), record); err != nil {
		t.Fatal(err)
	}
}

// A replica whose Lease has expired reads, and does not write until it has renewed the Lease.
func TestShard_FenceByTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shard, below := newShard(t), &sender{}
		send := func(method string) error {
			req, err := http.NewRequestWithContext(t.Context(), method, "https://host/path", strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			response, err := (&fence{below, shard}).RoundTrip(req)
			if err == nil {
				_ = response.Body.Close()
			}
			return err
		}
		record := resourcelock.LeaderElectionRecord{HolderIdentity: "a", LeaseDurationSeconds: 15}
		for _, step := range []struct {
			name   string
			after  time.Duration
			do     func()
			refuse bool
		}{
			{name: "before the Lease is held", after: time.Hour},
			{name: "held", do: func() { renew(t, shard, record) }},
			{name: "shortly before it expires", after: 15*time.Second - 1},
			{name: "expired", after: 1, refuse: true},
			{name: "renewed", do: func() { renew(t, shard, record) }},
			{
				name: "released", refuse: true,
				do: func() { renew(t, shard, resourcelock.LeaderElectionRecord{LeaseDurationSeconds: 1}) },
			},
		} {
			time.Sleep(step.after) // in the bubble, time passes at once
			if step.do != nil {
				step.do()
			}
			below.sent = nil
			if err := send(http.MethodGet); err != nil {
				t.Errorf("%s: a read was refused: %v", step.name, err)
			}
			err := send(http.MethodPatch)
			if refused := errors.Is(err, ErrLapsed); refused != step.refuse || !refused && err != nil {
				t.Errorf("%s: a write returned %v, want refused: %v", step.name, err, step.refuse)
			}
			if len(below.sent) == 2 == step.refuse {
				t.Errorf("%s: sent %v", step.name, below.sent)
			}
		}
	})
}
