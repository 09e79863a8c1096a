// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

func TestApplyingObjectManager_Mistakes(t *testing.T) {
	w := newWorld(t)
	ctx := reconcilers.StashConfig(t.Context(), w.Config)
	for name, tc := range map[string]struct {
		manager *reconcilers.ApplyingObjectManager[client.Object]
		want    []string
	}{
		"none": {&reconcilers.ApplyingObjectManager[client.Object]{Type: &corev1.ConfigMap{}}, nil},
		"all": {
			&reconcilers.ApplyingObjectManager[client.Object]{
				Name: "mine", Conflicts: "Fight", FieldOwner: strings.Repeat("x", 129),
				ConflictsAt: map[string]reconcilers.ConflictPolicy{"spec.a": "", "spec.b": "Win", "spec.c": "Force"},
			},
			[]string{
				`ApplyingObjectManager "mine" must define Type`,
				`ApplyingObjectManager "mine" must define a known policy as Conflicts, not "Fight"`,
				`ApplyingObjectManager "mine" must define a known policy as ConflictsAt["spec.a"], not ""`,
				`ApplyingObjectManager "mine" must define a known policy as ConflictsAt["spec.b"], not "Win"`,
				`ApplyingObjectManager "mine" must define a FieldOwner of at most 128 bytes, it has 129`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.manager.SetupWithManager(ctx, nil, nil)
			if (err != nil) != (len(tc.want) > 0) {
				t.Fatalf("error %v, want %q", err, tc.want)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want %q", err, want)
				}
			}
		})
	}
}

func TestApplyingObjectManager_GeneratedNames(t *testing.T) {
	w := newWorld(t)
	ctx := reconcilers.StashOriginalConfig(reconcilers.StashConfig(t.Context(), w.Config), w.Config)
	manager := &reconcilers.ApplyingObjectManager[*corev1.ConfigMap]{}
	desired := &corev1.ConfigMap{}
	desired.Namespace, desired.GenerateName = "default", "a-"
	_, err := manager.Manage(ctx, &corev1.ConfigMap{}, nil, desired)
	if want := "ConfigMap default/a-* must have a name"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
	if n := w.Count("apply ") + w.Count("create "); n > 0 {
		t.Errorf("%d requests to create it: %q", n, w.Trace())
	}
}

func TestMoveFields(t *testing.T) {
	const update, apply = metav1.ManagedFieldsOperationUpdate, metav1.ManagedFieldsOperationApply
	entry := func(manager string, operation metav1.ManagedFieldsOperationType, field string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, Operation: operation, APIVersion: "v1", FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:` + field + `":{}}}`),
		}
	}
	status := entry("old", update, "s")
	status.Subresource = "status"
	for name, tc := range map[string]struct {
		given []metav1.ManagedFieldsEntry
		want  []string
		from  []string
	}{
		"nothing to move": {
			given: []metav1.ManagedFieldsEntry{entry("new", apply, "a"), entry("kubectl-edit", update, "b"), status},
			want:  []string{"new Apply a", "kubectl-edit Update b", "old Update s"},
		},
		"an update": {
			given: []metav1.ManagedFieldsEntry{entry("new", apply, "a"), entry("old", update, "b")},
			want:  []string{"new Apply a b"}, from: []string{"old"},
		},
		"an apply": {
			given: []metav1.ManagedFieldsEntry{entry("old", apply, "a"), entry("x", update, "b")},
			want:  []string{"new Apply a", "x Update b"}, from: []string{"old"},
		},
		"both of one name, and own updates": {
			given: []metav1.ManagedFieldsEntry{entry("old", apply, "a"), entry("new", update, "c"), entry("old", update, "b")},
			want:  []string{"new Apply a b c"}, from: []string{"old", "new", "old"},
		},
		"an apply of another manager of the controller": {
			given: []metav1.ManagedFieldsEntry{entry("updates-only", apply, "a"), entry("new", apply, "b")},
			want:  []string{"updates-only Apply a", "new Apply b"},
		},
		"before the first apply": {
			given: []metav1.ManagedFieldsEntry{entry("new", apply, "a"), entry("before-first-apply", update, "b")},
			want:  []string{"new Apply a"}, from: []string{"before-first-apply"},
		},
		"before the first apply of this owner": {
			given: []metav1.ManagedFieldsEntry{entry("x", apply, "a"), entry("before-first-apply", update, "b")},
			want:  []string{"x Apply a", "before-first-apply Update b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := (&metav1.ObjectMeta{ManagedFields: tc.given}).DeepCopy()
			moved, from, err := reconcilers.MoveFields(tc.given, []string{"old", "new", "updates-only"}, []string{"old"}, "new")
			wantErr(t, nil, err)
			if diff := cmp.Diff(before.ManagedFields, tc.given); diff != "" {
				t.Errorf("the given entries, which a cache shares, have changed (-before +after):\n%s", diff)
			}
			got := []string{}
			for _, entry := range moved {
				text := entry.Manager + " " + string(entry.Operation)
				for _, field := range []string{"a", "b", "c", "s"} {
					if strings.Contains(entry.FieldsV1.GetRawString(), `"f:`+field+`"`) {
						text += " " + field
					}
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.from, from); diff != "" {
				t.Errorf("former owners (-want +got):\n%s", diff)
			}
		})
	}
}

// Two steps that apply different fields of one object with one owner would take each other's fields.
func TestApplyingObjectManager_TwoSteps(t *testing.T) {
	type manager = reconcilers.ApplyingObjectManager[*corev1.ConfigMap]
	shared := func() []*manager { m := &manager{Name: "shared"}; return []*manager{m, m} }
	for name, tc := range map[string]struct {
		managers []*manager
		fields   [2]string
		// want are the errors of three reconciles.
		want [3]bool
	}{
		"two managers":                  {[]*manager{{}, {}}, [2]string{"a", "b"}, [3]bool{true, true, true}},
		"two managers with two owners":  {[]*manager{{}, {FieldOwner: "other"}}, [2]string{"a", "b"}, [3]bool{}},
		"two managers, the same fields": {[]*manager{{}, {}}, [2]string{"a", "a"}, [3]bool{}},
		"one manager":                   {shared(), [2]string{"a", "b"}, [3]bool{false, true, true}},
		"one manager, the same fields":  {shared(), [2]string{"a", "a"}, [3]bool{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorldOn(t, newApplyingTracker, newResource(settled))
			steps := sequence{}
			for i, m := range tc.managers {
				steps = append(steps, &syncReconciler{Sync: func(ctx context.Context, r *fixture.Resource) error {
					desired, actual := newConfigMap("map"), &corev1.ConfigMap{}
					desired.Data = map[string]string{tc.fields[i]: "1"}
					desired.UID, desired.ResourceVersion = "", ""
					if err := w.Server.Get(ctx, client.ObjectKeyFromObject(desired), actual); err != nil {
						actual = nil
					} else {
						actual.CreationTimestamp = longAgo // the store sets none
					}
					_, err := m.Manage(ctx, r, actual, desired)
					return err
				}})
			}
			r := &resourceReconciler{Config: w.Config, Reconciler: steps}
			for pass, want := range tc.want {
				_, err := r.Reconcile(context.Background(), testRequest)
				if (err != nil) != want || err != nil && !strings.Contains(err.Error(), "two steps with the field owner") {
					t.Errorf("reconcile %d: error %v, want one: %t", pass, err, want)
				}
			}
		})
	}
}

// The field owner does not depend on names that an author may change.
func TestApplyingObjectManager_DefaultFieldOwner(t *testing.T) {
	for _, name := range []string{"", "renamed"} {
		for _, owner := range []string{"", "website"} {
			t.Run(fmt.Sprintf("%q of %q", owner, name), func(t *testing.T) {
				w := newWorldOn(t, newApplyingTracker, newResource(settled))
				manager := &reconcilers.ApplyingObjectManager[*corev1.ConfigMap]{Name: name}
				config := w.Config
				config.FieldOwner = owner
				r := &resourceReconciler{Name: name, Config: config, Reconciler: &syncReconciler{
					Sync: func(ctx context.Context, r *fixture.Resource) error {
						desired := newConfigMap("map")
						desired.UID, desired.ResourceVersion = "", ""
						_, err := manager.Manage(ctx, r, nil, desired)
						return err
					},
				}}
				_, err := r.Reconcile(context.Background(), testRequest)
				wantErr(t, nil, err)
				stored := newConfigMap("map")
				wantErr(t, nil, w.Server.Get(context.Background(), client.ObjectKeyFromObject(stored), stored))
				want := "trueup/resource.fixture.trueup.dev@ed3488e6"
				if owner != "" {
					want = owner
				}
				equal(t, "field owner", want, stored.ManagedFields[0].Manager)
			})
		}
	}
}
