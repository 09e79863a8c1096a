// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/fixture"
	"trueup.dev/reconcilers"
)

func TestUpdatingObjectManager(t *testing.T) {
	const track = "track ConfigMap default/child for default/test"
	const create, update, deleted = "create ConfigMap default/child", "update ConfigMap default/child", "delete ConfigMap default/child"
	because := func(reason, verb string) string {
		return "event default/test Warning " + reason + ": Failed to " + verb + ` ConfigMap "child": failure of the test`
	}
	drift := newConfigMap("child", func(cm *corev1.ConfigMap) { cm.Data["key"] = "drift" })
	withFinalizer := newResource(finalizer("test-finalizer"))

	for name, tc := range map[string]struct {
		reason          string
		manager         *configMaps
		parent          *fixture.Resource
		actual, desired *corev1.ConfigMap
		fail            map[string]error
		want            []string
		err             error
		// returned is the data of the object that is returned.
		returned map[string]string
	}{
		"nothing": {
			reason: "nothing exists and nothing is desired",
		},
		"nothing, finalizer": {
			reason:  "with nothing left the finalizer can go",
			manager: &configMaps{Finalizer: "test-finalizer"}, parent: withFinalizer,
			want: []string{cleared, patched},
		},
		"nothing, finalizer, failure": {
			reason:  "the failure is returned",
			manager: &configMaps{Finalizer: "test-finalizer"}, parent: withFinalizer,
			fail: map[string]error{"patch": errTest},
			want: []string{cleared, failed}, err: errTest,
		},
		"nothing, blank": {
			reason: "a blank object does not exist",
			actual: &corev1.ConfigMap{},
		},
		"delete": {
			reason:  "the finalizer stays until the object is seen to be gone",
			manager: &configMaps{Finalizer: "test-finalizer"}, parent: withFinalizer, actual: newConfigMap("child"),
			want: []string{deleted, childDeleted},
		},
		"delete, terminating": {
			reason: "it is being deleted already",
			actual: newConfigMap("child", leaving),
		},
		"delete, failure": {
			reason: "the failure is recorded and returned",
			actual: newConfigMap("child"),
			fail:   map[string]error{"delete": errTest},
			want:   []string{deleted, because("DeleteFailed", "delete")}, err: errTest,
		},
		"delete, quiet failure": {
			reason: "no event for a quiet error",
			actual: newConfigMap("child"),
			fail:   map[string]error{"delete": errQuiet},
			want:   []string{deleted}, err: errQuiet,
		},
		"delete, gone": {
			reason: "that it is gone already is what was wanted",
			actual: newConfigMap("child"),
			fail:   map[string]error{"delete": errNotFound},
			want:   []string{deleted},
		},
		"create": {
			reason:  "the object is returned as the server has it",
			desired: wanted("child"), want: []string{create, childCreated},
			returned: map[string]string{"key": "value", "added": "by the server"},
		},
		"create, blank": {
			reason: "a blank object does not exist",
			actual: &corev1.ConfigMap{}, desired: wanted("child"),
			want: []string{create, childCreated}, returned: map[string]string{"key": "value", "added": "by the server"},
		},
		"create, finalizer and track": {
			reason:  "the finalizer comes before, the name that is tracked is known after",
			manager: &configMaps{Finalizer: "test-finalizer", TrackDesired: true}, desired: wanted("child"),
			want:     []string{added, patched, create, track, childCreated},
			returned: map[string]string{"key": "value", "added": "by the server"},
		},
		"create, finalizer fails": {
			reason:  "without the finalizer nothing may be created",
			manager: &configMaps{Finalizer: "test-finalizer"}, desired: wanted("child"),
			fail: map[string]error{"patch": errTest}, want: []string{added, failed}, err: errTest,
		},
		"create, failure": {
			reason:  "what was not created is not tracked",
			manager: &configMaps{TrackDesired: true}, desired: wanted("child"),
			fail: map[string]error{"create": errTest}, want: []string{create, because("CreationFailed", "create")}, err: errTest,
		},
		"create, quiet failure": {
			reason:  "no event for a quiet error",
			desired: wanted("child"), fail: map[string]error{"create": errQuiet}, want: []string{create}, err: errQuiet,
		},
		"create, not trackable": {
			reason:  "the object exists, so tracking cannot make it a failure",
			manager: &configMaps{TrackDesired: true}, desired: wanted("child"),
			fail: map[string]error{"track": errTest}, want: []string{create, track, childCreated},
			returned: map[string]string{"key": "value", "added": "by the server"},
		},
		"in sync": {
			reason: "nothing is written", manager: &configMaps{TrackDesired: true},
			actual: newConfigMap("child"), desired: wanted("child"),
			want: []string{track}, returned: map[string]string{"key": "value"},
		},
		"in sync, finalizer": {
			reason: "the finalizer is restored", manager: &configMaps{Finalizer: "test-finalizer"},
			actual: newConfigMap("child"), desired: wanted("child"),
			want: []string{added, patched}, returned: map[string]string{"key": "value"},
		},
		"update": {
			reason: "the object is returned as the server has it",
			actual: drift, desired: wanted("child"), want: []string{update, childUpdated},
			returned: map[string]string{"key": "value", "added": "by the server"},
		},
		"update, finalizer and track": {
			reason: "all of it, in order", manager: &configMaps{Finalizer: "test-finalizer", TrackDesired: true},
			actual: drift, desired: wanted("child"), want: []string{added, patched, track, update, childUpdated},
			returned: map[string]string{"key": "value", "added": "by the server"},
		},
		"update, finalizer fails": {
			reason: "without the finalizer nothing may be changed", manager: &configMaps{Finalizer: "test-finalizer"},
			actual: drift, desired: wanted("child"),
			fail: map[string]error{"patch": errTest}, want: []string{added, failed}, err: errTest,
		},
		"update, failure": {
			reason: "the failure is recorded and returned",
			actual: drift, desired: wanted("child"),
			fail: map[string]error{"update": errTest}, want: []string{update, because("UpdateFailed", "update")}, err: errTest,
		},
		"update, quiet failure": {
			reason: "no event for a quiet error",
			actual: drift, desired: wanted("child"), fail: map[string]error{"update": errQuiet}, want: []string{update}, err: errQuiet,
		},
		"update, harmonized": {
			reason: "fields that cannot be changed are taken over before merging",
			manager: &configMaps{HarmonizeImmutableFields: func(current, desired *corev1.ConfigMap) {
				desired.Data["key"] = current.Data["key"]
			}},
			actual: drift, desired: wanted("child"), returned: map[string]string{"key": "drift"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			parent := tc.parent
			if parent == nil {
				parent = newResource()
			}
			given := []client.Object{parent}
			if tc.actual != nil && tc.actual.Name != "" {
				given = append(given, tc.actual)
			}
			w := newWorld(t, given...)
			w.Admit = func(obj client.Object) { obj.(*corev1.ConfigMap).Data["added"] = "by the server" }
			for line, err := range tc.fail {
				w.Fail(line, err)
			}
			manager := tc.manager
			if manager == nil {
				manager = &configMaps{}
			}
			manager.MergeBeforeUpdate = mergeData
			got, err := manager.Manage(w.Context(), parent.DeepCopy(), tc.actual, tc.desired)
			wantErr(t, tc.err, err)
			equal(t, "writes", tc.want, w.Writes())
			equal(t, "an object is returned", tc.returned != nil, got != nil)
			if got != nil {
				equal(t, "returned data", tc.returned, got.Data)
			}
			if t.Failed() {
				t.Log(tc.reason)
			}
		})
	}
}

func TestUpdatingObjectManager_DeletesOnlyWhatItLookedAt(t *testing.T) {
	w := newWorld(t, newConfigMap("child"))
	r := &configMaps{MergeBeforeUpdate: mergeData}
	_, err := r.Manage(w.Context(), newResource(), newConfigMap("child"), nil)
	wantErr(t, nil, err)
	equal(t, "deletes", 1, len(w.deletes))
	equal(t, "precondition", "uid-of-child", *w.deletes[0].Preconditions.UID)
}

func TestUpdatingObjectManager_GeneratedName(t *testing.T) {
	w := newWorld(t)
	r := &configMaps{TrackDesired: true, MergeBeforeUpdate: mergeData}
	desired := wanted("")
	desired.GenerateName = "child-"
	_, err := r.Manage(w.Context(), newResource(), nil, desired)
	wantErr(t, nil, err)
	equal(t, "writes: the name is that which the server chose", []string{
		"create ConfigMap default/child-1", "track ConfigMap default/child-1 for default/test", eventOn("Created", "child-1"),
	}, w.Writes())
}

func TestUpdatingObjectManager_EventsGoToTheOriginalConfig(t *testing.T) {
	w, other := newWorld(t), newWorld(t)
	r := &configMaps{MergeBeforeUpdate: mergeData}
	_, err := r.Manage(reconcilers.StashConfig(w.Context(), other.Config), newResource(), nil, wanted("child"))
	wantErr(t, nil, err)
	equal(t, "where the parent is", []string{childCreated}, w.Writes())
	equal(t, "where the child is", []string{"create ConfigMap default/child"}, other.Writes())
}

func TestUpdatingObjectManager_Duck(t *testing.T) {
	newManager := func() *reconcilers.UpdatingObjectManager[*fixture.Duck] {
		return &reconcilers.UpdatingObjectManager[*fixture.Duck]{
			Type: fixture.NewDuck("", ""), DangerouslyAllowDuckTypes: true,
			MergeBeforeUpdate: func(current, desired *fixture.Duck) { current.Spec = desired.Spec },
		}
	}
	desired := fixture.NewDuck("default", "duck")
	desired.Spec.Fields = map[string]string{"key": "value"}
	w := newWorld(t)
	r := newManager()
	actual, err := r.Manage(w.Context(), newResource(), nil, desired.DeepCopy())
	wantErr(t, nil, err)
	desired.Spec.Fields["key"] = "changed"
	_, err = r.Manage(w.Context(), newResource(), actual, desired.DeepCopy())
	wantErr(t, nil, err)
	equal(t, "writes: the kind in events is that of the duck", []string{
		"create Resource default/duck", `event default/test Normal Created: Created Resource "duck"`,
		"update Resource default/duck", `event default/test Normal Updated: Updated Resource "duck"`,
	}, w.Writes())

	r = newManager()
	r.DangerouslyAllowDuckTypes = false
	_, err = r.Manage(w.Context(), newResource(), nil, desired.DeepCopy())
	if err == nil {
		t.Error("a duck was created without permission to lose what it does not know")
	}
}

func TestUpdatingObjectManager_Validate(t *testing.T) {
	w := newWorld(t)
	merge := func(_, _ *fixture.Duck) {}
	type validator interface{ Validate(context.Context) error }
	for name, tc := range map[string]struct {
		manager validator
		want    string
	}{
		"valid":        {&configMaps{MergeBeforeUpdate: mergeData}, ""},
		"valid, typed": {&configMaps{Type: &corev1.ConfigMap{}, MergeBeforeUpdate: mergeData}, ""},
		"no merge":     {&configMaps{}, `UpdatingObjectManager "" must define MergeBeforeUpdate`},
		"no merge, named": {
			&configMaps{Name: "test"}, `UpdatingObjectManager "test" must define MergeBeforeUpdate`,
		},
		"duck": {
			&reconcilers.UpdatingObjectManager[*fixture.Duck]{Name: "test", Type: fixture.NewDuck("", ""), MergeBeforeUpdate: merge},
			`UpdatingObjectManager "test" must enable DangerouslyAllowDuckTypes to use a duck type`,
		},
		"duck, allowed": {
			&reconcilers.UpdatingObjectManager[*fixture.Duck]{
				Type: fixture.NewDuck("", ""), MergeBeforeUpdate: merge, DangerouslyAllowDuckTypes: true,
			}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			log, lines := newLog(1)
			wantText(t, tc.want, tc.manager.Validate(withLog(w.Context(), log)))
			equal(t, "log", nil, lines.messages())
		})
	}

	t.Run("needs a config", func(t *testing.T) {
		defer func() {
			if recover() == nil {
				t.Error("there is nothing to tell ducks with, and no panic")
			}
		}()
		_ = (&configMaps{MergeBeforeUpdate: mergeData}).Validate(context.Background())
	})
	t.Run("by the old name of setting up", func(t *testing.T) {
		r := &configMaps{}
		wantText(t, `UpdatingObjectManager "ConfigMapUpdatingObjectManager" must define MergeBeforeUpdate`, r.Setup(w.Context()))
		wantText(t, "", (&configMaps{MergeBeforeUpdate: mergeData}).Setup(w.Context()))
	})
}

func TestUpdatingObjectManager_LogsOnlyWhatHappens(t *testing.T) {
	log, lines := newLog(0)
	w := newWorld(t)
	r := &configMaps{MergeBeforeUpdate: mergeData}
	ctx := withLog(w.Context(), log)
	actual, err := r.Manage(ctx, newResource(), nil, wanted("child"))
	wantErr(t, nil, err)
	actual, err = r.Manage(ctx, newResource(), actual, wanted("child"))
	wantErr(t, nil, err)
	actual, err = r.Manage(ctx, newResource(), actual, wanted("child", "key", "changed"))
	wantErr(t, nil, err)
	_, err = r.Manage(ctx, newResource(), actual, nil)
	wantErr(t, nil, err)
	equal(t, "messages", []string{"creating resource", "updating resource", "updated resource", "deleting unwanted resource"}, lines.messages())
}
