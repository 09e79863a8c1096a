// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestIsAShutdownAnError tests what the controller logs as an error when the manager stops.
func TestIsAShutdownAnError(t *testing.T) {
	other := errors.New("no disk")
	for name, tc := range map[string]struct {
		stops    bool
		err      error
		observed bool
		want     error
	}{
		"interrupted":               {true, fmt.Errorf("call: %w", context.Canceled), true, nil},
		"interrupted, not observed": {true, fmt.Errorf("call: %w", context.Canceled), false, nil},
		"another error":             {true, other, true, other},
		"canceled by the reconciler": {
			false, context.Canceled, true, context.Canceled,
		},
	} {
		t.Run(name, func(t *testing.T) {
			hub := &Hub{}
			var finished error
			if tc.observed {
				hub.Add(Func(func(_ context.Context, event Event) {
					if e, ok := event.(*ReconcileFinished); ok {
						finished = e.Err
					}
				}))
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			o := &controllerObserver{hub: hub, reconciler: reconcile.Func(
				func(context.Context, reconcile.Request) (reconcile.Result, error) {
					if tc.stops {
						cancel()
					}
					return reconcile.Result{}, tc.err
				})}
			if _, err := o.Reconcile(ctx, reconcile.Request{}); !errors.Is(err, tc.want) || (err == nil) != (tc.want == nil) {
				t.Errorf("got error %v, want %v", err, tc.want)
			}
			if tc.observed && !errors.Is(finished, tc.err) {
				t.Errorf("listeners got error %v, want %v", finished, tc.err)
			}
		})
	}
}
