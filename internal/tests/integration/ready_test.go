// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/apis"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/operator"
	"trueup.dev/reconcilers"
)

// Does `kubectl wait` return while the second step fails for the new generation? In both styles, with a cast, and with
// the real command if it is installed.
func TestIsReadyWhileALaterStepFails(t *testing.T) {
	conditions := apis.NewLivingConditionSet("Built", "Deployed")
	// steps marks Built, and then Deployed unless that fails.
	steps := func(ctx context.Context, status *fixture.ResourceStatus, fails *atomic.Bool) error {
		manager := conditions.ManageWithContext(ctx, status)
		manager.MarkTrue("Built", "Done", "")
		if fails.Load() {
			return errors.New("the webhook is down")
		}
		manager.MarkTrue("Deployed", "Done", "")
		return nil
	}
	for name, styled := range map[string]func(e *env, fails *atomic.Bool) reconcilers.SubReconciler[*fixture.Resource]{
		"tree": func(_ *env, fails *atomic.Bool) reconcilers.SubReconciler[*fixture.Resource] {
			return &reconcilers.SyncReconciler[*fixture.Resource]{
				Sync: func(ctx context.Context, r *fixture.Resource) error { return steps(ctx, &r.Status, fails) },
			}
		},
		"cast": func(_ *env, fails *atomic.Bool) reconcilers.SubReconciler[*fixture.Resource] {
			return &reconcilers.CastResource[*fixture.Resource, *fixture.Resource]{
				Reconciler: &reconcilers.SyncReconciler[*fixture.Resource]{
					Sync: func(ctx context.Context, r *fixture.Resource) error { return steps(ctx, &r.Status, fails) },
				},
			}
		},
		"watcher": func(e *env, fails *atomic.Bool) reconcilers.SubReconciler[*fixture.Resource] {
			return operator.WatcherReconciler(&statusWatcher{client: e.Client, steps: func(
				ctx context.Context, r *fixture.Resource,
			) error {
				return steps(ctx, &r.Status, fails)
			}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			var fails atomic.Bool
			e.start(root(styled(e, &fails)))
			resource := newResource("it", nil)
			e.Add(resource)
			until(e, resource, func(r *fixture.Resource) error { return waitsFor(r, true) })

			fails.Store(true)
			change(e, resource, func(r *fixture.Resource) { r.Spec.Fields = map[string]string{"image": "new"} })
			until(e, resource, func(r *fixture.Resource) error {
				if built := meta.FindStatusCondition(r.Status.Conditions, "Built"); built.ObservedGeneration != r.Generation {
					return fmt.Errorf("the first step has not run: %+v", built)
				}
				return nil
			})
			e.Must(waitsFor(resource, false))
			e.kubectlWait(resource, "1ms", false)

			fails.Store(false)
			e.touch(resource) // do not wait for the back-off
			until(e, resource, func(r *fixture.Resource) error { return waitsFor(r, true) })
			e.kubectlWait(resource, "30s", true)
		})
	}
}

// waitsFor returns an error unless `kubectl wait --for=condition=Ready` returns or does not return, as told. The rule
// is that of k8s.io/kubectl/pkg/cmd/wait, conditional.go: a condition that is older than the resource does not count.
func waitsFor(r *fixture.Resource, met bool) error {
	ready := meta.FindStatusCondition(r.Status.Conditions, apis.ConditionReady)
	got := ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration >= r.Generation
	if got != met {
		return fmt.Errorf("ready for the generation %d is %t: %+v", r.Generation, got, r.Status.Conditions)
	}
	return nil
}

// kubectlWait runs the command and compares whether it succeeds, if it is installed.
func (e *env) kubectlWait(r *fixture.Resource, timeout string, succeeds bool) {
	e.Helper()
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		e.Log("kubectl is not installed")
		return
	}
	out := bytes.Buffer{}
	cmd := exec.CommandContext(
		e.Context(), kubectl, "--kubeconfig", e.KubeconfigPath(), "--namespace", r.Namespace, "wait", "--for=condition=Ready",
		"resources.fixture.trueup.dev/"+r.Name, "--timeout", timeout,
	)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); (err == nil) != succeeds {
		e.Errorf("kubectl wait: %v, want success=%t: %s", err, succeeds, out.String())
	}
}

// statusWatcher writes the status of a resource itself, as handlers of events do.
type statusWatcher struct {
	client client.Client
	steps  func(ctx context.Context, r *fixture.Resource) error
}

func (w *statusWatcher) Add(ctx context.Context, r *fixture.Resource) error {
	err := w.steps(ctx, r)
	return errors.Join(err, w.client.Status().Update(ctx, r))
}

func (w *statusWatcher) Update(ctx context.Context, _, r *fixture.Resource) error {
	return w.Add(ctx, r)
}

func (w *statusWatcher) Delete(context.Context, *fixture.Resource) error { return nil }
