// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

const finalizer = "integration.trueup.dev/finalizer"

func TestWithFinalizer(t *testing.T) {
	e := newEnv(t)
	var made, busy atomic.Bool
	var attempts atomic.Int64
	busy.Store(true)
	e.start(root(&reconcilers.WithFinalizer[*fixture.Resource]{
		Finalizer: finalizer,
		Reconciler: &reconcilers.SyncReconciler[*fixture.Resource]{
			Sync: func(ctx context.Context, resource *fixture.Resource) error {
				stored := &fixture.Resource{}
				if err := reconcilers.RetrieveConfigOrDie(ctx).APIReader.Get(
					ctx, client.ObjectKeyFromObject(resource), stored,
				); err != nil {
					return err
				}
				if !slices.Contains(stored.Finalizers, finalizer) {
					e.Error("the finalizer is not stored before the object to clean up is created")
				}
				made.Store(true)
				return nil
			},
			Finalize: func(context.Context, *fixture.Resource) error {
				attempts.Add(1)
				if busy.Load() {
					return errors.New("cannot clean up yet")
				}
				made.Store(false)
				return nil
			},
		},
	}))
	resource := newResource("resource", nil)
	e.Add(resource)
	e.Eventually(func() error {
		if !made.Load() {
			return errors.New("nothing was created")
		}
		return nil
	})

	e.Must(e.Delete(t.Context(), resource))
	e.Eventually(func() error {
		if got := attempts.Load(); got < 3 {
			return fmt.Errorf("%d attempts to clean up", got)
		}
		return nil
	})
	e.Must(e.Read(resource)) // it still exists
	if !slices.Contains(resource.Finalizers, finalizer) {
		t.Errorf("finalizers = %v before the cleanup", resource.Finalizers)
	}
	busy.Store(false)
	e.WaitForDeletion(resource)
	if made.Load() {
		t.Error("the resource was deleted before the cleanup")
	}
	e.events("resource", "FinalizerPatched")
}
