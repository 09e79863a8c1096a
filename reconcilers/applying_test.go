// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
