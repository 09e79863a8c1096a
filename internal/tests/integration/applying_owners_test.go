// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/reconcilers"
)

type applying = reconcilers.ApplyingObjectManager[client.Object]

func scaledDeployment(e *env) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: named("web"), Spec: appsv1.DeploymentSpec{
		Replicas: new(int32(1)), Selector: webSelector, Template: podTemplate(),
	}}
	d.Namespace = e.Namespace
	return d
}

// writes fails the test unless a reconcile has the wanted number of writes.
func (a *applier) writes(want int, desired client.Object, when string) {
	a.Helper()
	got, err := a.manage(desired)
	if err != nil {
		a.Fatalf("%s: %v", when, err)
	}
	if got != want {
		a.Errorf("%s: %d writes, want %d", when, got, want)
	}
}

// scale scales a Deployment as kubectl scale and a HorizontalPodAutoscaler do.
func (a *applier) scale(d *appsv1.Deployment, replicas int32) {
	a.Helper()
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
	body, owner := client.WithSubResourceBody(scale), client.FieldOwner("autoscaler")
	a.Must(a.SubResource("scale").Update(a.ctx, d.DeepCopy(), body, owner))
}

func TestWhoOwnsTheField_ConflictPolicies(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		options  func(m *applying)
		writes   int
		replicas int32
		err      *reconcilers.FieldConflictError
	}{
		"fail": {func(*applying) {}, 0, 3, &reconcilers.FieldConflictError{
			Object: "Deployment %/web", FieldOwner: "applier", Conflicts: []reconcilers.FieldConflict{
				{Path: ".spec.replicas", Owner: `"autoscaler" (Update of scale)`},
			},
		}},
		"force":    {func(m *applying) { m.Conflicts = reconcilers.ForceOnConflict }, 1, 1, nil},
		"give way": {func(m *applying) { m.Conflicts = reconcilers.GiveWayOnConflict }, 1, 3, nil},
		"give way at a path": {func(m *applying) {
			m.ConflictsAt = map[string]reconcilers.ConflictPolicy{"spec.replicas": reconcilers.GiveWayOnConflict}
		}, 1, 3, nil},
		"force at a path": {func(m *applying) {
			m.ConflictsAt = map[string]reconcilers.ConflictPolicy{".spec.replicas": reconcilers.ForceOnConflict}
		}, 1, 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			desired := scaledDeployment(e)
			a := newApplier(e, &appsv1.Deployment{}, tc.options)
			a.writes(1, desired, "creation")
			a.scale(desired, 3)

			// Another field changes at the same time.
			desired.Spec.MinReadySeconds = 1
			writes, err := a.manage(desired)
			var conflict *reconcilers.FieldConflictError
			errors.As(err, &conflict)
			if tc.err != nil {
				tc.err.Object = "Deployment " + e.Namespace + "/web"
			}
			if diff := cmp.Diff(tc.err, conflict); diff != "" || err != nil && conflict == nil {
				t.Errorf("conflicts (-want +got):\n%s\nerror: %v", diff, err)
			}
			live := desired.DeepCopy()
			a.Must(a.Get(a.ctx, client.ObjectKeyFromObject(live), live))
			if writes != tc.writes || *live.Spec.Replicas != tc.replicas {
				t.Errorf("%d writes and %d replicas, want %d and %d", writes, *live.Spec.Replicas, tc.writes, tc.replicas)
			}
			if tc.err != nil {
				return
			}
			a.writes(0, desired, "afterwards")
			a.restart(&appsv1.Deployment{})
			a.writes(0, desired, "after a restart")
			a.writes(0, desired, "at the end")
		})
	}
}

// TestWhoOwnsTheField_StaleOwners applies an object whose latest owners are not in the cache yet: forcing needs no
// retry.
func TestWhoOwnsTheField_StaleOwners(t *testing.T) {
	e := newEnv(t)
	desired := scaledDeployment(e)
	a := newApplier(e, &appsv1.Deployment{}, func(m *applying) { m.Conflicts = reconcilers.ForceOnConflict })
	a.writes(1, desired, "creation")
	cached := desired.DeepCopy()
	e.Must(e.Get(e.Context(), client.ObjectKeyFromObject(desired), cached))
	a.scale(desired, 3)

	desired.Spec.Replicas = new(int32(2))
	parent := newResource("parent", nil)
	parent.Namespace = e.Namespace
	stored, err := a.manager.Manage(a.ctx, parent, cached, desired)
	e.Must(err)
	if got := *stored.(*appsv1.Deployment).Spec.Replicas; got != 2 {
		t.Errorf("%d replicas, want 2", got)
	}
}

// TestWhoOwnsTheField_KubectlEdit changes fields as kubectl edit does: one that the controller owns, and another one.
func TestWhoOwnsTheField_KubectlEdit(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		policy   reconcilers.ConflictPolicy
		replicas int32
		conflict bool
	}{
		"fail":     {reconcilers.FailOnConflict, 5, true},
		"force":    {reconcilers.ForceOnConflict, 1, false},
		"give way": {reconcilers.GiveWayOnConflict, 5, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			a := newApplier(e, &appsv1.Deployment{}, func(m *applying) { m.Conflicts = tc.policy })
			desired := scaledDeployment(e)
			a.writes(1, desired, "creation")
			live := desired.DeepCopy()
			a.Must(a.Get(a.ctx, client.ObjectKeyFromObject(live), live))
			edited := live.DeepCopy()
			edited.Spec.Replicas, edited.Spec.MinReadySeconds = new(int32(5)), 7
			a.Must(a.Patch(a.ctx, edited, client.StrategicMergeFrom(live), client.FieldOwner("kubectl-edit")))

			_, err := a.manage(desired)
			var conflict *reconcilers.FieldConflictError
			if errors.As(err, &conflict) != tc.conflict || err != nil && !tc.conflict {
				t.Errorf("unexpected error: %v", err)
			}
			if tc.conflict {
				want := []reconcilers.FieldConflict{{Path: ".spec.replicas", Owner: `"kubectl-edit" (Update)`}}
				if diff := cmp.Diff(want, conflict.Conflicts); diff != "" {
					t.Errorf("conflicts (-want +got):\n%s", diff)
				}
			} else {
				a.writes(0, desired, "afterwards")
				a.restart(&appsv1.Deployment{})
				a.writes(0, desired, "after a restart")
			}
			a.Must(a.Get(a.ctx, client.ObjectKeyFromObject(live), live))
			if *live.Spec.Replicas != tc.replicas || live.Spec.MinReadySeconds != 7 {
				t.Errorf("%d replicas, minReadySeconds %d, want %d and 7",
					*live.Spec.Replicas, live.Spec.MinReadySeconds, tc.replicas)
			}
		})
	}
}

func TestWhoOwnsTheField_FieldsThatAreNotDesiredAnyMore(t *testing.T) {
	e := newEnv(t)
	a := newApplier(e, &corev1.ConfigMap{}, nil)
	desired := newConfigMap("map", map[string]string{"kept": "1", "removed": "1", "shared": "1"})
	desired.Namespace = e.Namespace
	a.writes(1, desired, "creation")
	change(e, newNamed(desired), func(m *corev1.ConfigMap) {
		m.Data["foreign"], m.Labels = "1", map[string]string{"by": "hand"}
	})
	a.writes(0, desired, "after another client added fields")

	// The fields are removed after a restart, too: the API server knows who owns them.
	a.restart(&corev1.ConfigMap{})
	delete(desired.Data, "removed")
	a.writes(1, desired, "after a field is no longer desired")
	live := newNamed(desired)
	a.Must(a.Get(a.ctx, client.ObjectKeyFromObject(live), live))
	if diff := cmp.Diff(map[string]string{"kept": "1", "shared": "1", "foreign": "1"}, live.Data); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"by": "hand"}, live.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}

func newNamed(of *corev1.ConfigMap) *corev1.ConfigMap {
	m := newConfigMap(of.Name, nil)
	m.Namespace = of.Namespace
	return m
}

// TestWhoOwnsTheField_AfterUpdates moves objects of a controller that updated them to server-side apply, and back.
func TestWhoOwnsTheField_AfterUpdates(t *testing.T) {
	e := newEnv(t)
	for _, former := range []bool{false, true} {
		name, left := "forgotten", map[string]string{"kept": "2", "removed": "1"}
		if former {
			name, left = "moved", map[string]string{"kept": "2"}
		}
		desired := newConfigMap(name, map[string]string{"kept": "1", "removed": "1"})
		desired.Namespace = e.Namespace
		e.Must(e.Create(e.Context(), desired.DeepCopy(), client.FieldOwner("operator")))
		a := newApplier(e, &corev1.ConfigMap{}, func(m *applying) {
			if m.Conflicts = reconcilers.ForceOnConflict; former {
				m.FormerOwners = []string{"operator"}
			}
		})
		if _, err := a.manage(desired); err != nil {
			t.Fatal(err)
		}
		a.writes(0, desired, name)
		a.restart(&corev1.ConfigMap{})
		a.writes(0, desired, name+" after a restart")
		desired.Data = map[string]string{"kept": "2"}
		a.writes(1, desired, name+" after a change")
		live := newNamed(desired)
		a.Must(a.Get(a.ctx, client.ObjectKeyFromObject(live), live))
		if diff := cmp.Diff(left, live.Data); diff != "" {
			t.Errorf("data of %s (-want +got):\n%s", name, diff)
		}

		// The way back: updates replace what the manager merges, also fields of other owners.
		back := &reconcilers.UpdatingObjectManager[*corev1.ConfigMap]{
			MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) { current.Data = desired.Data },
		}
		for _, data := range []map[string]string{{"kept": "2", "added": "1"}, {"kept": "3"}} {
			desired.Data = data
			for pass := range 2 {
				before := a.counting.writes
				_, err := back.Manage(a.ctx, newResource("parent", nil), live.DeepCopy(), desired.DeepCopy())
				e.Must(err)
				if got := a.counting.writes - before; got != 1-pass {
					t.Errorf("%s, back: %d writes in reconcile %d", name, got, pass)
				}
				a.Must(a.Get(a.ctx, client.ObjectKeyFromObject(live), live))
			}
			if diff := cmp.Diff(data, live.Data); diff != "" {
				t.Errorf("data of %s, back (-want +got):\n%s", name, diff)
			}
		}

		// And forward again, with another new field.
		desired.Data = map[string]string{"kept": "3", "last": "1"}
		a.restart(&corev1.ConfigMap{})
		if _, err := a.manage(desired); err != nil {
			t.Fatal(err)
		}
		a.writes(0, desired, name+" forward again")
	}
}

func TestWhoOwnsTheField_ExistingObjectsAreNotTakenOver(t *testing.T) {
	e := newEnv(t)
	foreign := newConfigMap("map", map[string]string{"by": "hand"})
	foreign.Namespace = e.Namespace
	e.Add(foreign)
	a := newApplier(e, &corev1.ConfigMap{}, func(m *applying) { m.Conflicts = reconcilers.ForceOnConflict })
	_, err := a.manager.Manage(a.ctx, newResource("parent", nil), nil, client.Object(newConfigMapIn(e, "map")))
	if !apierrs.IsAlreadyExists(err) || a.counting.writes != 0 {
		t.Errorf("error %v and %d writes, want AlreadyExists and none", err, a.counting.writes)
	}

	// An object of the same name that replaced the one in the cache is not changed, either.
	cached := newNamed(foreign)
	a.Must(a.Get(a.ctx, client.ObjectKeyFromObject(cached), cached))
	e.Must(e.Delete(e.Context(), cached.DeepCopy()))
	foreign.ResourceVersion, foreign.UID = "", ""
	e.Add(foreign)
	_, err = a.manager.Manage(a.ctx, newResource("parent", nil), client.Object(cached), newConfigMapIn(e, "map"))
	if err == nil {
		t.Error("no error for an object that replaced the one in the cache")
	}
	live := newNamed(foreign)
	a.Must(a.Get(a.ctx, client.ObjectKeyFromObject(live), live))
	if diff := cmp.Diff(map[string]string{"by": "hand"}, live.Data); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
}

func newConfigMapIn(e *env, name string) *corev1.ConfigMap {
	m := newConfigMap(name, map[string]string{"by": "controller"})
	m.Namespace = e.Namespace
	return m
}
