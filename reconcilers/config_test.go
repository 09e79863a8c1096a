// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	"trueup.dev/tracker"
)

func TestConfig_TrackAndGet(t *testing.T) {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("v1")
	u.SetKind("ConfigMap")
	for name, tc := range map[string]struct {
		given   []client.Object
		key     types.NamespacedName
		obj     client.Object
		fail    map[string]error
		want    []string
		missing bool
		err     error
	}{
		"typed": {
			given: []client.Object{newConfigMap("theme")}, key: types.NamespacedName{
				Namespace: "default", Name: "theme",
			}, obj: &corev1.ConfigMap{},
			want: []string{"track ConfigMap default/theme for default/test", "get ConfigMap default/theme"},
		},
		"unstructured": {
			given: []client.Object{newConfigMap("theme")}, key: types.NamespacedName{
				Namespace: "default", Name: "theme",
			}, obj: u,
			want: []string{"track ConfigMap default/theme for default/test", "get ConfigMap default/theme"},
		},
		"duck": {
			given: []client.Object{newResource(func(r *fixture.Resource) { r.Name = "duck" })},
			key:   types.NamespacedName{Namespace: "default", Name: "duck"}, obj: fixture.NewDuck("", ""),
			want: []string{"track Resource default/duck for default/test", "get Resource default/duck"},
		},
		"not found": {
			key: types.NamespacedName{Namespace: "other", Name: "theme"}, obj: &corev1.ConfigMap{},
			want: []string{"track ConfigMap other/theme for default/test", "get ConfigMap other/theme"}, missing: true,
		},
		"cluster-scoped": {
			given: []client.Object{
				&corev1.Namespace{ObjectMeta: newConfigMap("home", func(cm *corev1.ConfigMap) { cm.Namespace = "" }).ObjectMeta},
			},
			key: types.NamespacedName{Name: "home"}, obj: &corev1.Namespace{},
			want: []string{"track Namespace /home for default/test", "get Namespace /home"},
		},
		"not trackable": {
			// Names of roles may contain characters that other names must not contain.
			given: []client.Object{&rbacv1.Role{ObjectMeta: newConfigMap("system:role").ObjectMeta}},
			key:   types.NamespacedName{Namespace: "default", Name: "system:role"}, obj: &rbacv1.Role{},
			want: []string{"track Role default/system:role for default/test", "get Role default/system:role"},
		},
		"get fails": {
			key: types.NamespacedName{Namespace: "default", Name: "theme"}, obj: &corev1.ConfigMap{},
			fail: map[string]error{"get": errTest}, err: errTest,
			want: []string{"track ConfigMap default/theme for default/test", "get ConfigMap default/theme"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.given...)
			for line, err := range tc.fail {
				w.Fail(line, err)
			}
			err := w.Config.TrackAndGet(w.Context(), tc.key, tc.obj)
			if tc.missing {
				equal(t, "not found", true, apierrs.IsNotFound(err))
			} else {
				wantErr(t, tc.err, err)
			}
			equal(t, "trace", tc.want, w.Trace())
			if len(tc.given) > 0 {
				equal(t, "name", tc.key.Name, tc.obj.GetName())
			}
		})
	}

	t.Run("observers", func(t *testing.T) {
		w := newWorld(t)
		_ = w.Config.TrackAndGet(w.Context(), types.NamespacedName{Namespace: "default", Name: "theme"}, &corev1.ConfigMap{})
		observers, err := w.Config.Tracker.GetObservers(newConfigMap("theme"))
		wantErr(t, nil, err)
		equal(t, "observers", []types.NamespacedName{testRequest.NamespacedName}, observers)
	})
}

func TestConfig_TrackAndList(t *testing.T) {
	labeled := newConfigMap("theme", func(cm *corev1.ConfigMap) { cm.Labels = map[string]string{"app": "test"} })
	u := &unstructured.UnstructuredList{}
	u.SetAPIVersion("v1")
	u.SetKind("ConfigMapList")
	for name, tc := range map[string]struct {
		list client.ObjectList
		opts []client.ListOption
		fail error
		want []string
		size int
	}{
		"all": {
			list: &corev1.ConfigMapList{}, size: 2,
			want: []string{"track ConfigMap /[] for default/test", "list ConfigMap"},
		},
		"of a namespace": {
			list: &corev1.ConfigMapList{}, opts: []client.ListOption{client.InNamespace("default")}, size: 2,
			want: []string{"track ConfigMap default/[] for default/test", "list ConfigMap in default"},
		},
		"with labels": {
			list: &corev1.ConfigMapList{}, opts: []client.ListOption{
				client.InNamespace("default"), client.MatchingLabels{"app": "test"},
			}, size: 1,
			want: []string{"track ConfigMap default/[app=test] for default/test", "list ConfigMap in default labels app=test"},
		},
		"unstructured": {
			list: u, opts: []client.ListOption{client.MatchingLabels{"app": "test"}},
			want: []string{"track ConfigMap /[app=test] for default/test", "list ConfigMap labels app=test"},
		},
		"list fails": {
			list: &corev1.ConfigMapList{}, fail: errTest,
			want: []string{"track ConfigMap /[] for default/test", "list ConfigMap"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, labeled, newConfigMap("plain"))
			if tc.fail != nil {
				w.Fail("list", tc.fail)
			}
			wantErr(t, tc.fail, w.Config.TrackAndList(w.Context(), tc.list, tc.opts...))
			equal(t, "trace", tc.want, w.Trace())
			if list, ok := tc.list.(*corev1.ConfigMapList); ok {
				equal(t, "items", tc.size, len(list.Items))
			}
		})
	}
	t.Run("observers", func(t *testing.T) {
		w := newWorld(t)
		wantErr(t, nil, w.Config.TrackAndList(w.Context(), &corev1.ConfigMapList{}, client.MatchingLabels{"app": "test"}))
		observers, err := w.Config.Tracker.GetObservers(labeled)
		wantErr(t, nil, err)
		equal(t, "observers", []types.NamespacedName{testRequest.NamespacedName}, observers)
		observers, err = w.Config.Tracker.GetObservers(newConfigMap("plain"))
		wantErr(t, nil, err)
		equal(t, "observers of an object that is not selected", nil, observers)
	})
}

func TestConfig_FailureToTrackIsLogged(t *testing.T) {
	w := newWorld(t, newConfigMap("theme"))
	w.Fail("track", errTest)
	log, lines := newLog(0)
	ctx := withLog(w.Context(), log)
	wantErr(
		t, nil, w.Config.TrackAndGet(ctx, types.NamespacedName{Namespace: "default", Name: "theme"}, &corev1.ConfigMap{}),
	)
	wantErr(t, nil, w.Config.TrackAndList(ctx, &corev1.ConfigMapList{}))
	const message = "unable to track, changes will not trigger the resource"
	equal(t, "messages", []string{message, message}, lines.messages())
}

func TestConfig_Values(t *testing.T) {
	w := newWorld(t)
	equal(t, "empty", true, reconcilers.Config{}.IsEmpty())
	equal(t, "empty", false, w.Config.IsEmpty())
	same := w.Config
	if same != w.Config {
		t.Error("copies of a config differ")
	}

	fresh := w.Config.WithTracker()
	if fresh.Tracker == w.Config.Tracker || fresh.Tracker == nil {
		t.Error("the tracker is not new")
	}
	fresh.Tracker = w.Config.Tracker
	if fresh != w.Config {
		t.Error("WithTracker changes more than the tracker")
	}

	dangerous := w.Config.WithDangerousDuckClientOperations()
	duck := fixture.NewDuck("default", "duck")
	wantErr(t, nil, dangerous.Create(context.Background(), duck))
	if err := w.Config.Create(context.Background(), fixture.NewDuck("default", "other")); err == nil {
		t.Error("a duck was created although this is not allowed")
	}
	dangerous.Client = w.Config.Client
	if dangerous != w.Config {
		t.Error("WithDangerousDuckClientOperations changes more than the client")
	}
}

func TestContext_Empty(t *testing.T) {
	const missing = "config must exist on the context. Check that the context is from a ResourceReconciler or WithConfig"
	const missingOriginal = "resource config must exist on the context. Check that the context is from a " +
		"ResourceReconciler"
	ctx := context.Background()
	equal(t, "request", reconcilers.Request{}, reconcilers.RetrieveRequest(ctx))
	if reconcilers.RetrieveResourceType(ctx) != nil || reconcilers.RetrieveOriginalResourceType(ctx) != nil {
		t.Error("an empty context has a resource type")
	}
	if configs := reconcilers.RetrieveAdditionalConfigs(ctx); configs == nil || len(configs) != 0 {
		t.Errorf("additional configs = %#v", configs)
	}
	_, err := reconcilers.RetrieveConfig(ctx)
	wantText(t, missing, err)
	_, err = reconcilers.RetrieveOriginalConfig(ctx)
	wantText(t, missingOriginal, err)

	for want, retrieve := range map[string]func(){
		missing:         func() { reconcilers.RetrieveConfigOrDie(ctx) },
		missingOriginal: func() { reconcilers.RetrieveOriginalConfigOrDie(ctx) },
	} {
		func() {
			defer func() {
				err, ok := recover().(error)
				if !ok || err.Error() != want {
					t.Errorf("panic with %v, want %s", err, want)
				}
			}()
			retrieve()
		}()
	}
}

func TestContext_Values(t *testing.T) {
	one, two := newWorld(t).Config, newWorld(t).Config
	resource, cast := &fixture.Resource{}, &corev1.Secret{}
	outer := reconcilers.StashRequest(context.Background(), testRequest)
	outer = reconcilers.StashConfig(outer, one)
	outer = reconcilers.StashOriginalConfig(outer, one)
	outer = reconcilers.StashResourceType(outer, resource)
	outer = reconcilers.StashOriginalResourceType(outer, resource)
	outer = reconcilers.StashAdditionalConfigs(outer, map[string]reconcilers.Config{"other": two})
	inner := reconcilers.StashConfig(outer, two)
	inner = reconcilers.StashResourceType(inner, cast)

	for name, tc := range map[string]struct {
		ctx              context.Context
		config, original reconcilers.Config
		current          client.Object
	}{
		"outer": {outer, one, one, resource},
		"inner": {inner, two, one, cast},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := reconcilers.RetrieveConfig(tc.ctx)
			original, oerr := reconcilers.RetrieveOriginalConfig(tc.ctx)
			if err := errors.Join(err, oerr); err != nil {
				t.Fatal(err)
			}
			if config != tc.config || original != tc.original {
				t.Error("a config is not the one that was stashed")
			}
			if reconcilers.RetrieveConfigOrDie(tc.ctx) != tc.config ||
				reconcilers.RetrieveOriginalConfigOrDie(tc.ctx) != tc.original {
				t.Error("a config is not the one that was stashed")
			}
			if got := reconcilers.RetrieveResourceType(tc.ctx); got != tc.current {
				t.Errorf("resource type is %T", got)
			}
			if got := reconcilers.RetrieveOriginalResourceType(tc.ctx); got != resource {
				t.Errorf("original resource type is %T", got)
			}
			equal(t, "request", testRequest, reconcilers.RetrieveRequest(tc.ctx))
			equal(t, "additional configs", 1, len(reconcilers.RetrieveAdditionalConfigs(tc.ctx)))
		})
	}
}

// brokenTracker returns an error from GetObservers.
type brokenTracker struct {
	tracker.Tracker
	err error
}

func (t brokenTracker) GetObservers(client.Object) ([]types.NamespacedName, error) { return nil, t.err }

func TestEnqueueTracked(t *testing.T) {
	for name, tc := range map[string]struct {
		err     error
		obj     string
		want    []reconcilers.Request
		wantLog []string
	}{
		"tracked":                {obj: "theme", want: []reconcilers.Request{testRequest}},
		"not tracked":            {obj: "other"},
		"tracker fails":          {err: errTest, obj: "theme", wantLog: []string{"unable to get tracked requests"}},
		"tracker fails, quietly": {err: errQuiet, obj: "theme"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			config := w.Config
			wantErr(t, nil, config.Tracker.TrackObject(newConfigMap("theme"), newResource()))
			if tc.err != nil {
				config.Tracker = brokenTracker{config.Tracker, tc.err}
			}
			log, lines := newLog(0)
			handler := reconcilers.EnqueueTracked(withLog(reconcilers.StashConfig(context.Background(), config), log))
			queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcilers.Request]())
			defer queue.ShutDown()
			handler.Create(context.Background(), event.CreateEvent{Object: newConfigMap(tc.obj)}, queue)
			got := []reconcilers.Request{}
			for queue.Len() > 0 {
				req, _ := queue.Get()
				got = append(got, req)
				queue.Done(req)
			}
			equal(t, "requests", tc.want, got)
			equal(t, "log", tc.wantLog, lines.messages())
		})
	}

	t.Run("needs a config", func(t *testing.T) {
		defer func() {
			if recover() == nil {
				t.Error("no panic without a config")
			}
		}()
		reconcilers.EnqueueTracked(context.Background())
	})
}

// TestWhichEventsAreRecorded records a Normal event, and Warning events at 0, 30 and 90 seconds, where the second
// repeats the first.
func TestWhichEventsAreRecorded(t *testing.T) {
	const created, failed = "Normal Created Created Secret", "Warning ReconcileFailed quota"
	for name, tc := range map[string]struct {
		options reconcilers.EventOptions
		want    []string
	}{
		"all, by default": {want: []string{created, failed, failed, failed}},
		"warnings": {
			options: reconcilers.EventOptions{DisableNormal: true}, want: []string{failed, failed, failed},
		},
		"no warnings": {options: reconcilers.EventOptions{DisableWarning: true}, want: []string{created}},
		"none":        {options: reconcilers.EventOptions{DisableNormal: true, DisableWarning: true}},
		"repeats after a minute": {
			options: reconcilers.EventOptions{Interval: time.Minute}, want: []string{created, failed, failed},
		},
		"repeats after an hour": {
			options: reconcilers.EventOptions{Interval: time.Hour}, want: []string{created, failed},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			config := configFor(w, newManager(t, w, newEventCache(w.Scheme)))
			recorded := record.NewFakeRecorder(10)
			config.Recorder, config.Events = recorded, tc.options
			synctest.Test(t, func(*testing.T) {
				warn := func() { config.RecordEvent(newResource(), corev1.EventTypeWarning, "ReconcileFailed", "%s", "quota") }
				config.RecordEvent(newResource(), corev1.EventTypeNormal, "Created", "Created %s", "Secret")
				warn()
				time.Sleep(30 * time.Second)
				warn()
				time.Sleep(time.Minute)
				warn()
			})
			close(recorded.Events)
			var got []string
			for event := range recorded.Events {
				got = append(got, event)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRepeatsOfDifferentEvents tests that an interval does not drop events of other objects, or with other texts.
func TestRepeatsOfDifferentEvents(t *testing.T) {
	w := newWorld(t)
	config := configFor(w, newManager(t, w, newEventCache(w.Scheme)))
	recorded := record.NewFakeRecorder(10)
	config.Recorder, config.Events.Interval = recorded, time.Hour
	another := newResource()
	another.Name = "another"
	for range 2 {
		config.RecordEvent(newResource(), corev1.EventTypeWarning, "ReconcileFailed", "quota")
		config.RecordEvent(newResource(), corev1.EventTypeWarning, "ReconcileFailed", "no route")
		config.RecordEvent(another, corev1.EventTypeWarning, "ReconcileFailed", "quota")
	}
	if got := len(recorded.Events); got != 3 {
		t.Errorf("got %d events, want 3", got)
	}
}

// TestEventsWithoutARecorder tests that a config without a recorder drops events.
func TestEventsWithoutARecorder(*testing.T) {
	reconcilers.Config{}.RecordEvent(newResource(), corev1.EventTypeWarning, "ReconcileFailed", "quota")
}

// A Config without a recorder records no events.
func TestConfig_NeedsNoRecorder(t *testing.T) {
	for name, fails := range map[string]bool{"writes that succeed": false, "writes that fail": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newResource())
			w.Config.Recorder = nil
			if fails {
				w.Config.Client = refusingClient{w.Config.Client}
			}
			child := &reconcilers.ChildReconciler[*fixture.Resource, *corev1.ConfigMap, *corev1.ConfigMapList]{
				DesiredChild: func(_ context.Context, r *fixture.Resource) (*corev1.ConfigMap, error) {
					return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name}}, nil
				},
				MergeBeforeUpdate:          func(current, desired *corev1.ConfigMap) { current.Data = desired.Data },
				ReflectChildStatusOnParent: func(context.Context, *fixture.Resource, *corev1.ConfigMap, error) {},
			}
			root := &resourceReconciler{Config: w.Config, Reconciler: &reconcilers.WithFinalizer[*fixture.Resource]{
				Finalizer: "test.example.com/it", Reconciler: child,
			}}
			if _, err := root.Reconcile(t.Context(), testRequest); (err != nil) != fails {
				t.Errorf("error %v", err)
			}
			found := w.Server.Get(t.Context(), testRequest.NamespacedName, &corev1.ConfigMap{}) == nil
			if found == fails {
				t.Errorf("the child exists: %t", found)
			}
		})
	}
}

// refusingClient fails all writes.
type refusingClient struct{ client.Client }

func (refusingClient) Create(context.Context, client.Object, ...client.CreateOption) error {
	return errTest
}

func (refusingClient) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return errTest
}
