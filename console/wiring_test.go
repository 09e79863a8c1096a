// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	ctrl "sigs.k8s.io/controller-runtime"

	"trueup.dev/graph"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/observe/recorder"
	"trueup.dev/reconcilers"
)

type (
	resource       = *fixture.Resource
	syncReconciler = reconcilers.SyncReconciler[resource]
)

func step(path string, runs int64) recorder.StepStats {
	return recorder.StepStats{Path: strings.Split(path, "/"), Runs: runs, Recent: int(runs)}
}

// TestWhichReconcilerFails compares the tree of a controller with its executed steps.
func TestWhichReconcilerFails(t *testing.T) {
	nothing := func(context.Context, resource) error { return nil }
	g, err := graph.Record(t.Context(), fixture.NewScheme(), func(ctx context.Context, mgr ctrl.Manager) error {
		return (&reconcilers.ResourceReconciler[resource]{
			Name: "Root", Config: reconcilers.NewConfig(mgr, nil, time.Hour),
			Reconciler: reconcilers.Sequence[resource]{
				&syncReconciler{Name: "First", Sync: nothing},
				&reconcilers.ForEach[resource, string]{
					Items:      func(context.Context, resource) ([]string, error) { return nil, nil },
					Reconciler: &syncReconciler{Name: "Item", Sync: nothing},
				},
				&reconcilers.IfThen[resource]{
					If: func(context.Context, resource) bool { return true }, Then: &syncReconciler{Name: "Never", Sync: nothing},
				},
			},
		}).SetupWithManager(ctx, mgr)
	})
	if err != nil {
		t.Fatal(err)
	}
	failing := step("Root/1/ForEach/b.c/Item", 2)
	failing.RecentFailures, failing.LastError, failing.LastFailed = 1, "quota", started
	steps := []recorder.StepStats{
		step("Root", 5), step("Root/0", 5), step("Root/0/First", 5), step("Root/0/First/Mine", 4),
		step("Root/0/First/Mine/Inner", 3), step("Root/1", 5), step("Root/1/ForEach", 5), step("Root/1/ForEach/a", 5),
		step("Root/1/ForEach/a/Item", 5), step("Root/1/ForEach/b.c", 2), failing, step("Root/2", 1), step("Root/2/IfThen", 1),
		step("Root/3", 1),
	}
	for name, tc := range map[string]struct {
		root  *graph.Node
		steps []recorder.StepStats
		want  string
	}{
		"wired": {g.Controllers[0], steps, `
Root: 5
  reconcilers.Sequence: part of the reconciler above
    First: 5
      Mine: 4
        Inner: 3
    ForEach: 5
      Item: 7, 1 failed: quota
    IfThen: 1
      Never: not executed
    3: 1
`},
		"not executed": {g.Controllers[0], nil, `
Root: not executed
  reconcilers.Sequence: part of the reconciler above
    First: not executed
    ForEach: not executed
      Item: not executed
    IfThen: not executed
      Never: not executed
`},
		"unknown wiring": {nil, steps[:4], `
Root: 5
  0: 5
    First: 5
      Mine: 4
`},
	} {
		t.Run(name, func(t *testing.T) {
			var got strings.Builder
			got.WriteString("\n")
			for _, r := range wiring(tc.root, tc.steps) {
				fmt.Fprintf(&got, "%s%s: ", strings.Repeat("  ", r.Depth), r.Name)
				switch {
				case r.Stats != nil && r.Stats.RecentFailures > 0:
					fmt.Fprintf(&got, "%d, %d failed: %s\n", r.Stats.Runs, r.Stats.RecentFailures, r.Stats.LastError)
				case r.Stats != nil:
					fmt.Fprintf(&got, "%d\n", r.Stats.Runs)
				case r.IsStep:
					got.WriteString("not executed\n")
				default:
					got.WriteString("part of the reconciler above\n")
				}
			}
			if diff := cmp.Diff(tc.want, got.String()); diff != "" {
				t.Errorf("reconcilers (-want +got):\n%s", diff)
			}
		})
	}
}
