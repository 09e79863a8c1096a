// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// A manager that stops interrupts running reconciles. This is not a failure, and no event reports it.
func TestShutdownIsNotAFailure(t *testing.T) {
	t.Parallel()
	stopped := func(entered chan<- string) reconcilers.SubReconciler[*fixture.Resource] {
		return &reconcilers.SyncReconciler[*fixture.Resource]{
			Sync: func(ctx context.Context, resource *fixture.Resource) error {
				entered <- resource.Name
				<-ctx.Done()
				resource.Status.Fields = map[string]string{"changed": "late"}
				return nil
			},
		}
	}
	child := configMapOf("-child", func(*fixture.Resource) map[string]string { return nil })
	tests := map[string]func(entered chan<- string) reconcilers.SubReconciler[*fixture.Resource]{
		"status": stopped,
		"child": func(entered chan<- string) reconcilers.SubReconciler[*fixture.Resource] {
			return &reconcilers.TryCatch[*fixture.Resource]{Try: stopped(entered), Finally: child}
		},
		"finalizer": func(entered chan<- string) reconcilers.SubReconciler[*fixture.Resource] {
			return &reconcilers.TryCatch[*fixture.Resource]{
				Try: stopped(entered),
				Finally: &reconcilers.WithFinalizer[*fixture.Resource]{
					Finalizer: finalizer, Reconciler: reconcilers.Sequence[*fixture.Resource]{},
				},
			}
		},
	}
	for name, reconciler := range tests {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			recorder := record.NewFakeRecorder(10)
			entered := make(chan string, 10)
			stop := e.start(func(ctx context.Context, mgr ctrl.Manager, c reconcilers.Config) error {
				c.Recorder = recorder
				return root(reconciler(entered))(ctx, mgr, c)
			})
			e.Add(newResource("it", nil))
			<-entered
			stop()
			close(recorder.Events)
			events := []string{}
			for event := range recorder.Events {
				events = append(events, event)
			}
			if diff := cmp.Diff([]string{}, events); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}
