// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"cmp"
	"context"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/walk"
)

// steps returns the steps of a walk, and the index of the Settle after each write. A run of them records in results
// which writes were rejected.
func (s *specSpace) steps(w walk.Walk, results []stored) (steps []Step, settles []int) {
	steps = append(steps, s.before...)
	for i, spec := range w {
		do := func(ctx context.Context, c client.Client) error {
			err := s.write(ctx, c, spec)
			if results[i].rejected == nil && !apierrs.IsInvalid(err) && !apierrs.IsForbidden(err) && !apierrs.IsBadRequest(err) {
				return err
			}
			results[i].rejected = cmp.Or(results[i].rejected, err)
			return nil
		}
		settle := Settle()
		settle.plain.MayFail = true
		step := Do("write: "+spec.Describe(w[:i]), do)
		if spec.Disturbance != "" {
			step = *s.disturbance(spec.Disturbance)
			step.plain.Disturbs = true
		}
		steps = append(steps, step, settle)
		settles = append(settles, len(steps)-1)
	}
	return steps, settles
}

// disturbance returns a disturbance of the scenario, or nil.
func (s *specSpace) disturbance(name string) *Step {
	for i := range s.plan.Disturbances {
		if step := &s.plan.Disturbances[i]; step.plain.Name == name {
			return step
		}
	}
	return nil
}
