// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// data fails the test unless an object has the wanted data and field managers.
func (a *applier) data(of *corev1.ConfigMap, when string, want map[string]string, managers ...string) {
	a.Helper()
	live := newNamed(of)
	a.Must(a.Get(a.ctx, client.ObjectKeyFromObject(live), live))
	if diff := cmp.Diff(want, live.Data); diff != "" {
		a.Errorf("%s: data (-want +got):\n%s", when, diff)
	}
	if diff := cmp.Diff(managers, managersOf(live)); diff != "" {
		a.Errorf("%s: field managers (-want +got):\n%s", when, diff)
	}
}

// managersOf returns the field managers of an object, with their operations.
func managersOf(obj client.Object) []string {
	var managers []string
	for _, entry := range obj.GetManagedFields() {
		managers = append(managers, fmt.Sprintf("%s %s", entry.Manager, entry.Operation))
	}
	slices.Sort(managers)
	return managers
}

// TestFieldOwnersCanBeRenamed applies an object as one owner, and then as another one that knows the former name.
func TestFieldOwnersCanBeRenamed(t *testing.T) {
	e := newEnv(t)
	owner := "website"
	a := newApplier(e, &corev1.ConfigMap{}, func(m *applying) {
		if m.FieldOwner = owner; owner != "website" {
			m.FormerOwners = []string{"website"}
		}
	})
	desired := newConfigMap("map", map[string]string{"a": "1", "b": "1"})
	desired.Namespace = e.Namespace
	a.writes(1, desired, "creation")
	for _, name := range []string{"new", "new2"} {
		if owner = name; name == "new2" {
			owner = "website" // and back
			a.options = func(m *applying) { m.FieldOwner, m.FormerOwners = owner, []string{"new"} }
		}
		a.restart(&corev1.ConfigMap{})
		a.writes(1, desired, name+": the fields are moved")
		a.writes(0, desired, name+": afterwards")
		a.restart(&corev1.ConfigMap{})
		a.writes(0, desired, name+": after a restart")
	}
	a.data(desired, "moved", map[string]string{"a": "1", "b": "1"}, "website Apply")

	// A field is removed and another one changes in the version that has the new name.
	owner = "last"
	a.options = func(m *applying) { m.FieldOwner, m.FormerOwners = owner, []string{"website"} }
	a.restart(&corev1.ConfigMap{})
	desired.Data = map[string]string{"a": "2"}
	a.writes(2, desired, "moved and applied")
	a.data(desired, "moved and applied", map[string]string{"a": "2"}, "last Apply")
	a.writes(0, desired, "at the end")
}

// TestDefaultFieldOwner_Upgrade starts a controller whose earlier version applied its child with the name of the root
// reconciler, and updated another child with the name of its binary.
func TestDefaultFieldOwner_Upgrade(t *testing.T) {
	e := newEnv(t)
	parent := newResource("parent", map[string]string{"a": "1", "b": "1"})
	e.Add(parent)
	child := newConfigMap("parent", map[string]string{"a": "1", "b": "1"})
	child.Namespace = e.Namespace
	controller := metav1.NewControllerRef(parent, fixture.GroupVersion.WithKind("Resource"))
	child.OwnerReferences = []metav1.OwnerReference{*controller}
	old := newApplier(e, &corev1.ConfigMap{}, func(m *applying) { m.FieldOwner = "ResourceResourceReconciler" })
	old.writes(1, child, "creation by the earlier version")

	e.start(root(&reconcilers.ChildReconciler[*fixture.Resource, *corev1.ConfigMap, *corev1.ConfigMapList]{
		DesiredChild: func(_ context.Context, parent *fixture.Resource) (*corev1.ConfigMap, error) {
			m := newConfigMap(parent.Name, parent.Spec.Fields)
			m.Namespace = parent.Namespace
			return m, nil
		},
		ChildObjectManager:         &reconcilers.ApplyingObjectManager[*corev1.ConfigMap]{},
		ReflectChildStatusOnParent: func(context.Context, *fixture.Resource, *corev1.ConfigMap, error) {},
	}))
	change(e, parent, func(r *fixture.Resource) { r.Spec.Fields = map[string]string{"a": "2"} })
	until(e, child, func(m *corev1.ConfigMap) error {
		want := []string{"trueup/resource.fixture.trueup.dev@ed3488e6 Apply"}
		data := map[string]string{"a": "2", "Defaulter": "ran"}
		if diff := cmp.Diff(data, m.Data) + cmp.Diff(want, managersOf(m)); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
}

// TestFieldsFromBeforeTheFirstApply manages a child that the API server has attributed to a field manager that is not a
// client.
func TestFieldsFromBeforeTheFirstApply(t *testing.T) {
	for name, other := range map[string]bool{"another client applied first": true, "no managed fields": false} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			a := newApplier(e, &corev1.ConfigMap{}, nil)
			desired := newConfigMap("map", map[string]string{"a": "1", "b": "1", "foreign": "1"})
			desired.Namespace = e.Namespace
			e.Must(e.Create(e.Context(), desired.DeepCopy()))
			e.Must(e.Patch(e.Context(), desired.DeepCopy(),
				client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"managedFields":[{}]}}`))))
			a.data(desired, "reset", map[string]string{"a": "1", "b": "1", "foreign": "1"})
			managers := []string{"applier Apply"}
			if other {
				label := newUnstructured(corev1.SchemeGroupVersion.WithKind("ConfigMap"), "map")
				label.SetNamespace(e.Namespace)
				label.SetLabels(map[string]string{"other": "1"})
				e.Must(e.Apply(e.Context(), client.ApplyConfigurationFromUnstructured(label), client.FieldOwner("other")))
				managers = append(managers, "other Apply")
			}

			desired.Data = map[string]string{"a": "2", "b": "1"}
			a.writes(2, desired, "applied and moved")
			a.data(desired, "moved", map[string]string{"a": "2", "b": "1", "foreign": "1"}, managers...)
			a.writes(0, desired, "afterwards")
			delete(desired.Data, "b")
			a.writes(1, desired, "after a field is no longer desired")
			a.data(desired, "at the end", map[string]string{"a": "2", "foreign": "1"}, managers...)
		})
	}
}

// TestTwoStepsApplyOneObject applies different fields of one object in two steps: with two field owners, the object
// gets both. With one, the second step fails, and does not remove what the first one has applied.
func TestTwoStepsApplyOneObject(t *testing.T) {
	for name, tc := range map[string]struct {
		owner string // of the second step
		want  map[string]string
	}{
		"distinct owners": {"second", map[string]string{"first": "1", "second": "1"}},
		"one owner":       {"", map[string]string{"first": "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			step := func(field, owner string) reconcilers.SubReconciler[*fixture.Resource] {
				manager := &reconcilers.ApplyingObjectManager[*corev1.ConfigMap]{Name: field, FieldOwner: owner}
				return &reconcilers.SyncReconciler[*fixture.Resource]{
					Sync: func(ctx context.Context, resource *fixture.Resource) error {
						desired, actual := newConfigMap("map", map[string]string{field: "1"}), newConfigMap("", nil)
						desired.Namespace = resource.Namespace
						c := reconcilers.RetrieveConfigOrDie(ctx)
						if err := c.APIReader.Get(ctx, client.ObjectKeyFromObject(desired), actual); err != nil {
							actual = nil
						}
						_, err := manager.Manage(ctx, resource, actual, desired)
						return err
					},
				}
			}
			e.start(root(reconcilers.Sequence[*fixture.Resource]{step("first", ""), step("second", tc.owner)}))
			e.Add(newResource("it", nil))
			m := newConfigMap("map", nil)
			m.Namespace = e.Namespace
			if tc.owner == "" {
				e.events("it", "UpdateFailed")
			}
			until(e, m, func(m *corev1.ConfigMap) error {
				if diff := cmp.Diff(tc.want, m.Data); diff != "" {
					return errors.New(diff)
				}
				return nil
			})
		})
	}
}

// TestTakeBack takes fields back from clients that own them.
func TestTakeBack(t *testing.T) {
	for name, tc := range map[string]struct {
		policy   reconcilers.ConflictPolicy
		value    string
		desired  bool // the annotation is part of the desired object
		writes   int
		replicas int32
	}{
		"give way":                 {reconcilers.GiveWayOnConflict, "spec.replicas", false, 2, 1},
		"give way, a field above":  {reconcilers.GiveWayOnConflict, "metadata, .spec", false, 2, 1},
		"give way, every field":    {reconcilers.GiveWayOnConflict, "*", false, 2, 1},
		"give way, another field":  {reconcilers.GiveWayOnConflict, "spec.template", false, 1, 3},
		"give way, a longer field": {reconcilers.GiveWayOnConflict, "spec.replicas.all,", false, 1, 3},
		"fail":                     {reconcilers.FailOnConflict, "spec.replicas", false, 2, 1},
		"desired":                  {reconcilers.GiveWayOnConflict, "spec.replicas", true, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			desired := scaledDeployment(e)
			a := newApplier(e, &appsv1.Deployment{}, func(m *applying) { m.Conflicts = tc.policy })
			a.writes(1, desired, "creation")
			a.scale(desired, 3)
			if _, err := a.manage(desired); err != nil && !strings.Contains(err.Error(), "autoscaler") {
				t.Fatal(err)
			}
			if annotations := map[string]string{reconcilers.AnnotationTakeBack: tc.value}; tc.desired {
				desired.Annotations = annotations
			} else {
				change(e, desired.DeepCopy(), func(d *appsv1.Deployment) { d.Annotations = annotations })
			}
			a.writes(tc.writes, desired, "with the annotation")
			a.writes(0, desired, "afterwards")
			a.restart(&appsv1.Deployment{})
			a.writes(0, desired, "after a restart")
			live := desired.DeepCopy()
			a.Must(a.Get(a.ctx, client.ObjectKeyFromObject(live), live))
			if _, kept := live.Annotations[reconcilers.AnnotationTakeBack]; kept != tc.desired {
				t.Errorf("the annotation was kept: %t, want %t", kept, tc.desired)
			}
			if got := *live.Spec.Replicas; got != tc.replicas {
				t.Errorf("%d replicas, want %d", got, tc.replicas)
			}
		})
	}
}
