// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// wrapper is a user's reconciler that does not set up what it contains.
type wrapper struct {
	subReconciler
	setup func(bldr *reconcilers.Builder)
}

func (w *wrapper) SetupWithManager(_ context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
	if w.setup != nil {
		w.setup(bldr)
	}
	return nil
}

// Is it said that SetupWithManager was not called? Once, by a controller.
func TestSetupWithManager_NotCalled(t *testing.T) {
	const root = `SetupWithManager of ResourceReconciler \"ResourceResourceReconciler\" was not called`
	const child = `SetupWithManager of ChildReconciler \"ConfigMapChildReconciler\" was not called, and the controller does ` +
		`not watch ConfigMap`
	for name, tc := range map[string]struct {
		wrap      func(subReconciler) subReconciler
		noSetup   bool
		noManager bool
		want      string
	}{
		"of none":                    {noSetup: true, want: root},
		"of none, without a manager": {noSetup: true, noManager: true},
		"of a part that a wrapper forgets": {
			wrap: func(r subReconciler) subReconciler { return &wrapper{r, nil} }, want: child,
		},
		"of a part, whose kind is watched": {wrap: func(r subReconciler) subReconciler {
			return &wrapper{r, func(bldr *reconcilers.Builder) { bldr.Owns(&corev1.ConfigMap{}) }}
		}},
		"called": {},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newResource(settled))
			mgr := newManager(t, w, newEventCache(w.Scheme))
			log, lines := newLog(0)
			ctx := withLog(context.Background(), log)
			part := subReconciler(newChild(func(*fixture.Resource, string) {}))
			if tc.wrap != nil {
				part = tc.wrap(part)
			}
			r := &resourceReconciler{Config: configFor(w, mgr), Reconciler: part}
			if tc.noManager {
				r.Config = w.Config
			}
			if !tc.noSetup {
				wantErr(t, nil, r.SetupWithManager(ctx, mgr))
			}
			for range 2 {
				_, err := r.ReconcileManaged(ctx, testRequest)
				wantErr(t, nil, err)
			}
			want := 1
			if tc.want == "" {
				want = 0
			}
			if got := strings.Count(lines.all(), "was not called"); got != want || !strings.Contains(lines.all(), tc.want) {
				t.Errorf("%d messages, want %d of %q:\n%s", got, want, tc.want, lines.all())
			}
		})
	}
}
