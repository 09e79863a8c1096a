// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/lab/benchmarks/internal/lab"
)

// Large is [Converge] with as many parents as a large cluster has, a restart, and changes.
type Large struct{}

// About describes the workload.
func (Large) About() lab.About {
	return lab.About{
		Name: "large",
		Text: "the parents of converge; then the controller is restarted, with nothing to do, and the data of every " +
			"fifth parent changes",
		Noun:  "parents",
		Sizes: []int{100_000},
	}
}

// Run measures until all parents have converged, the cost of no-op reconciles, a restart, and changes.
func (w Large) Run(ctx context.Context, trial *lab.Trial) error {
	if err := (Converge{}).Run(ctx, trial); err != nil {
		return err
	}
	plan := planOneChild(trial, withOneChild)
	if err := trial.Restart(ctx, plan); err != nil {
		return err
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"data":{"greeting":"good evening"}}}`))
	return trial.Change(ctx, plan, trial.Size/5, func(ctx context.Context, i int) error {
		return trial.Live.Patch(ctx, parent(5*i), patch)
	})
}
