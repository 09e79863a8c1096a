// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/await"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

const (
	byNamespace = "list ConfigMap in default"
	byOwner     = "list ConfigMap in default fields trueup.dev/controller-uid=parent"
)

// lists reconciles and returns the lists that the client received.
func lists(t *testing.T, w *world, r *resourceReconciler) []string {
	t.Helper()
	w.Trace()
	_, err := r.Reconcile(context.Background(), testRequest)
	wantErr(t, nil, err)
	found := []string{}
	for _, line := range w.Trace() {
		if len(line) > 5 && line[:5] == "list " {
			found = append(found, line)
		}
	}
	return found
}

func TestOwnerIndex_FindsChildren(t *testing.T) {
	for name, newSub := range map[string]func(w *world) reconcilers.SubReconciler[*fixture.Resource]{
		"child":     func(w *world) reconcilers.SubReconciler[*fixture.Resource] { return newChildReconciler(w) },
		"child set": func(w *world) reconcilers.SubReconciler[*fixture.Resource] { return newChildSetReconciler(w) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(
				t, newResource(settled),
				newConfigMap("of-another", func(cm *corev1.ConfigMap) { cm.OwnerReferences[0].UID = "another" }),
			)
			events := newEventCache(w.Scheme)
			mgr := newManager(t, w, events)
			r := &resourceReconciler{Config: configFor(w, mgr), Reconciler: newSub(w)}
			wantErr(t, nil, r.SetupWithManager(context.Background(), mgr))
			equal(t, "indexes", []string{"*v1.ConfigMap by trueup.dev/controller-uid"}, events.indexed)
			equal(t, "lists, to create", []string{byOwner}, lists(t, w, r))
			equal(t, "lists, in sync", []string{byOwner}, lists(t, w, r))
		})
	}
}

func TestOwnerIndex_IsRegisteredOncePerKind(t *testing.T) {
	w := newWorld(t)
	events := newEventCache(w.Scheme)
	mgr := newManager(t, w, events)
	r := &resourceReconciler{Config: configFor(w, mgr), Reconciler: sequence{
		newChildReconciler(w, identifiedByName), newChildReconciler(w, identifiedByName),
		newChildSetReconciler(w, identifiedByLabel), newSecretReconciler(), newDeploymentReconciler(new("one")),
	}}
	wantErr(t, nil, r.SetupWithManager(context.Background(), mgr))
	equal(t, "indexes: none for children without owner references", []string{
		"*v1.ConfigMap by trueup.dev/controller-uid", "*v1.Deployment by trueup.dev/controller-uid",
	}, events.indexed)
}

func TestOwnerIndex_IsSharedByControllersOfOneManager(t *testing.T) {
	// Use the cache of production: it rejects duplicate indexes.
	w := newWorld(t)
	mgr := newManager(t, w, nil)
	config := configFor(w, mgr)
	for name, c := range map[string]reconcilers.Config{
		"a config": config, "the same config": config, "a config of its own": configFor(w, mgr),
	} {
		r := &resourceReconciler{Config: c, Reconciler: newChildReconciler(w, identifiedByName)}
		if err := r.SetupWithManager(context.Background(), mgr); err != nil {
			t.Errorf("second controller for the same kind of children with %s: %v", name, err)
		}
	}
}

func TestOwnerIndex_Failures(t *testing.T) {
	t.Run("kind is not served", func(t *testing.T) {
		w := newWorld(t, newResource(settled))
		mgr := newManager(t, w, nil, "ConfigMap")
		r := &resourceReconciler{Config: configFor(w, mgr), Reconciler: newChildReconciler(w)}
		wantErr(t, nil, r.SetupWithManager(context.Background(), mgr))
		equal(t, "lists", []string{byNamespace}, lists(t, w, r))
	})
	t.Run("kind is served later", func(t *testing.T) {
		w := newWorld(t, newResource(settled))
		events := newEventCache(w.Scheme)
		events.indexErr = &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "ConfigMap"}}
		mgr := newManager(t, w, events)
		log, lines := newLog(0)
		r := &resourceReconciler{Config: configFor(w, mgr), Reconciler: newChildReconciler(w)}
		wantErr(t, nil, r.SetupWithManager(withLog(context.Background(), log), mgr))
		equal(t, "lists before", []string{byNamespace}, lists(t, w, r))
		start(t, mgr)
		const waiting = "unable to index children by owner yet, trying again"
		await.Nil(t, time.Minute, func() error {
			if !strings.Contains(lines.all(), waiting) {
				return errors.New("no message about the index")
			}
			return nil
		})
		events.mu.Lock()
		events.indexErr = nil
		events.mu.Unlock()
		await.Nil(t, time.Minute, func() error {
			if got := lists(t, w, r); !slices.Equal(got, []string{byOwner}) {
				return fmt.Errorf("lists: %v", got)
			}
			return nil
		})
		equal(t, "messages", 1, strings.Count(lines.all(), waiting))
	})
	t.Run("index cannot be created", func(t *testing.T) {
		w := newWorld(t)
		events := newEventCache(w.Scheme)
		events.indexErr = errTest
		mgr := newManager(t, w, events)
		r := &resourceReconciler{Config: configFor(w, mgr), Reconciler: newChildReconciler(w)}
		err := r.SetupWithManager(context.Background(), mgr)
		wantErr(t, errTest, err)
		wantText(t, "index ConfigMap by owner: failure of the test", err)
	})
	t.Run("client does not know the index", func(t *testing.T) {
		w := newWorld(t, newResource(settled))
		mgr := newManager(t, w, newEventCache(w.Scheme))
		r := &resourceReconciler{Config: configFor(w, mgr), Reconciler: newChildReconciler(w)}
		wantErr(t, nil, r.SetupWithManager(context.Background(), mgr))
		w.Fail(byOwner, errTest)
		equal(t, "lists at first", []string{byOwner, byNamespace}, lists(t, w, r))
		equal(t, "lists later", []string{byNamespace}, lists(t, w, r))
	})
	t.Run("client fails", func(t *testing.T) {
		w := newWorld(t, newResource(settled))
		mgr := newManager(t, w, newEventCache(w.Scheme))
		r := &resourceReconciler{Config: configFor(w, mgr), Reconciler: newChildReconciler(w)}
		wantErr(t, nil, r.SetupWithManager(context.Background(), mgr))
		w.Fail(byNamespace, errTest)
		_, err := r.Reconcile(context.Background(), testRequest)
		wantErr(t, errTest, err)
		w.Heal()
		equal(t, "lists after the client recovers: the index is still used", []string{byOwner}, lists(t, w, r))
	})
	t.Run("without a manager", func(t *testing.T) {
		w := newWorld(t, newResource(settled))
		r := &resourceReconciler{Config: w.Config, Reconciler: newChildReconciler(w)}
		equal(t, "lists", []string{byNamespace}, lists(t, w, r))
	})
}

func TestOwnerIndex_OwnListOptions(t *testing.T) {
	for name, tc := range map[string]struct {
		options []client.ListOption
		want    string
	}{
		"labels and namespace": {
			[]client.ListOption{client.InNamespace("other"), client.MatchingLabels{"app": "test"}},
			"list ConfigMap in other labels app=test fields trueup.dev/controller-uid=parent",
		},
		"no namespace": {nil, "list ConfigMap fields trueup.dev/controller-uid=parent"},
		"a field selector": {
			[]client.ListOption{
				client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("trueup.dev/controller-uid", "mine")},
			},
			"list ConfigMap fields trueup.dev/controller-uid=mine",
		},
		"an empty field selector": {
			[]client.ListOption{client.MatchingFieldsSelector{Selector: fields.Everything()}},
			"list ConfigMap fields trueup.dev/controller-uid=parent",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newResource(settled))
			mgr := newManager(t, w, newEventCache(w.Scheme))
			child := newChildReconciler(w, func(r *childReconciler) {
				r.ListOptions = func(context.Context, *fixture.Resource) []client.ListOption { return tc.options }
			})
			r := &resourceReconciler{Config: configFor(w, mgr), Reconciler: child}
			wantErr(t, nil, r.SetupWithManager(context.Background(), mgr))
			equal(t, "lists", []string{tc.want}, lists(t, w, r))
		})
	}
}

func TestOwnerIndex_IsSeparateForTypedAndUnstructuredObjects(t *testing.T) {
	w := newWorld(t, newResource(settled), newConfigMap("child"))
	events := newEventCache(w.Scheme)
	mgr := newManager(t, w, events)
	child, list := &unstructured.Unstructured{}, &unstructured.UnstructuredList{}
	child.SetAPIVersion("v1")
	child.SetKind("ConfigMap")
	list.SetAPIVersion("v1")
	list.SetKind("ConfigMapList")
	r := &resourceReconciler{Config: configFor(w, mgr), Reconciler: sequence{
		newChildReconciler(w, identifiedByName),
		&reconcilers.ChildReconciler[*fixture.Resource, *unstructured.Unstructured, *unstructured.UnstructuredList]{
			ChildType: child, ChildListType: list,
			OurChild: func(_ *fixture.Resource, child *unstructured.Unstructured) bool { return child.GetName() == "other" },
			DesiredChild: func(context.Context, *fixture.Resource) (*unstructured.Unstructured, error) {
				return nil, nil
			},
			ReflectChildStatusOnParent: func(context.Context, *fixture.Resource, *unstructured.Unstructured, error) {},
			MergeBeforeUpdate:          func(_, _ *unstructured.Unstructured) {},
		},
	}}
	wantErr(t, nil, r.SetupWithManager(context.Background(), mgr))
	equal(t, "indexes: caches of typed and of unstructured objects are separate", []string{
		"*v1.ConfigMap by trueup.dev/controller-uid", "*unstructured.Unstructured by trueup.dev/controller-uid",
	}, events.indexed)

	// By default, a client does not read unstructured objects from the cache, and the API server does not support the
	// field.
	w.FailNth("list ConfigMap", 2, errTest)
	equal(t, "lists at first", []string{byOwner, byOwner, byNamespace}, lists(t, w, r))
	w.Heal()
	equal(t, "lists later: the typed objects still have their index", []string{byOwner, byNamespace}, lists(t, w, r))
}

func TestNewConfig(t *testing.T) {
	w := newWorld(t, newConfigMap("theme"))
	mgr := newManager(t, w, newEventCache(w.Scheme))
	config := reconcilers.NewConfig(mgr, &fixture.Resource{}, time.Hour)
	if config.Client == nil || config.APIReader == nil || config.Discovery == nil || config.Recorder == nil ||
		config.EventRecorder == nil || config.Tracker == nil {
		t.Errorf("the config is incomplete: %+v", config)
	}
	same := config
	if same != config {
		t.Error("copies of a config differ")
	}
	wantErr(
		t, nil, config.Get(context.Background(), client.ObjectKeyFromObject(newConfigMap("theme")), &corev1.ConfigMap{}),
	)
	duck := fixture.NewDuck("default", "missing")
	if err := config.Get(context.Background(), client.ObjectKeyFromObject(duck), duck); client.IgnoreNotFound(err) != nil {
		t.Errorf("the client does not know ducks: %v", err)
	}

	other := config.WithCluster(mgr)
	if other.Tracker != config.Tracker {
		t.Error("the config of another cluster has a different tracker")
	}

	synctest.Test(t, func(t *testing.T) {
		config := config.WithTracker()
		observers := func() int {
			observers, err := config.Tracker.GetObservers(newConfigMap("theme"))
			wantErr(t, nil, err)
			return len(observers)
		}
		wantErr(t, nil, config.Tracker.TrackObject(newConfigMap("theme"), newResource()))
		time.Sleep(2*time.Hour - time.Second)
		equal(t, "observers before two sync periods are over", 1, observers())
		time.Sleep(2 * time.Second)
		equal(t, "observers once two sync periods are over", 0, observers())
	})
}
