// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
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
	labelled := newConfigMap("theme", func(cm *corev1.ConfigMap) { cm.Labels = map[string]string{"app": "test"} })
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
			w := newWorld(t, labelled, newConfigMap("plain"))
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
		observers, err := w.Config.Tracker.GetObservers(labelled)
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
