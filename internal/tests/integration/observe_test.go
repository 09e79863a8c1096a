// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"trueup.dev/informer"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/observe"
	"trueup.dev/operator"
	"trueup.dev/reconcilers"
)

// log collects the events of a manager as lines.
type log struct {
	mu    sync.Mutex
	lines []string
}

func (l *log) Observe(ctx context.Context, e observe.Event) context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch e := e.(type) {
	case *observe.ReconcileStarted:
		for _, cause := range e.Run.Causes {
			parts := strings.Join(cause.Parts(), ",")
			line := fmt.Sprintf("cause %s %s %s %s %s", cause.Type, cause.Verb, cause.Kind.Kind, cause.Object.Name, parts)
			if cause.Type == observe.CauseRetry {
				line += fmt.Sprintf("%d after %v", cause.Attempt, cause.Err)
			}
			l.lines = append(l.lines, strings.TrimSpace(line))
		}
	case *observe.StepFinished:
		l.lines = append(l.lines, fmt.Sprintf("step %s %s", strings.Join(e.Path, "."), e.Outcome))
	case *observe.Call:
		paths := []string{}
		for _, change := range e.Changes(observe.Mask{}) {
			paths = append(paths, fmt.Sprintf("%s %s→%s", change.Path, change.Before, change.After))
		}
		line := fmt.Sprintf("call %s %s %s/%s by %s %s", e.Verb, e.Kind.Kind, e.Object.Name, e.Subresource,
			strings.Join(e.Path, "."), strings.Join(paths, ", "))
		l.lines = append(l.lines, strings.TrimSpace(line))
	case *observe.Tracked:
		l.lines = append(l.lines, fmt.Sprintf("tracked %s %s by %s", e.Kind.Kind, e.Name, strings.Join(e.Path, ".")))
	case *observe.ReconcileFinished:
		line := fmt.Sprintf("finished %s", e.Run.Object.Name)
		for _, failure := range e.Failures {
			line += fmt.Sprintf(", %s failed: %v", failure.Step, failure.Err)
		}
		l.lines = append(l.lines, line)
	}
	return ctx
}

// await waits for lines after those that were awaited before, and forgets all lines.
func (l *log) await(e *env, what string, want ...string) {
	e.Helper()
	e.Eventually(func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, line := range want {
			if !slices.Contains(l.lines, line) {
				return fmt.Errorf("%s: no line %q in:\n%s", what, line, strings.Join(l.lines, "\n"))
			}
		}
		l.lines = nil
		return nil
	})
}

// TestWhyDidItRun tests the causes of the reconciles of one resource.
func TestWhyDidItRun(t *testing.T) {
	e := newEnv(t)
	failing := errors.New("not yet")
	nudges := make(chan event.GenericEvent, 1)
	seen := &log{}
	reconciler := reconcilers.Sequence[*fixture.Resource]{
		&reconcilers.SyncReconciler[*fixture.Resource]{
			Name: "Settings",
			Setup: func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
				bldr.Watches(&corev1.Secret{}, reconcilers.EnqueueTracked(ctx))
				bldr.WatchesRawSource(source.Channel(nudges, &handler.EnqueueRequestForObject{}))
				return nil
			},
			SyncWithResult: func(ctx context.Context, r *fixture.Resource) (reconcilers.Result, error) {
				key := types.NamespacedName{Namespace: r.Namespace, Name: "settings"}
				if err := reconcilers.RetrieveConfigOrDie(ctx).TrackAndGet(ctx, key, &corev1.Secret{}); err != nil {
					return reconcilers.Result{}, err
				}
				switch r.Spec.Fields["then"] {
				case "fail":
					return reconcilers.Result{}, failing
				case "again":
					return reconcilers.Result{RequeueAfter: 50 * time.Millisecond}, nil
				}
				return reconcilers.Result{}, nil
			},
		},
		&reconcilers.ChildReconciler[*fixture.Resource, *corev1.ConfigMap, *corev1.ConfigMapList]{
			Name: "Child",
			DesiredChild: func(_ context.Context, r *fixture.Resource) (*corev1.ConfigMap, error) {
				child := newConfigMap(r.Name+"-child", map[string]string{"value": r.Spec.Fields["value"]})
				child.Namespace = r.Namespace
				return child, nil
			},
			MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) { current.Data = desired.Data },
			ReflectChildStatusOnParent: func(context.Context, *fixture.Resource, *corev1.ConfigMap, error) {
			},
		},
	}
	setups := func(ctx context.Context, mgr ctrl.Manager, c reconcilers.Config) error {
		observe.Of(mgr).Add(seen)
		return root(reconciler)(ctx, mgr, c)
	}
	settings := &corev1.Secret{StringData: map[string]string{"password": "hunter2"}}
	settings.Name = "settings"
	e.Add(settings)
	e.Add(newResource("first", nil))
	stop := e.start(setups)
	seen.await(e, "a resource that existed before", "cause StartUp Created Resource first", "finished first")
	it := newResource("it", nil)
	it.Spec.Fields = map[string]string{"value": "1"}
	e.Add(it)
	in := "ResourceResourceReconciler"
	seen.await(e, "a new resource", "cause Object Created Resource it", "tracked Secret settings by "+in+".0.Settings",
		"call create ConfigMap it-child/ by "+in+".1.Child", "step "+in+".1.Child Succeeded", "finished it")
	change(e, it, func(r *fixture.Resource) { r.Spec.Fields["value"] = "2" })
	seen.await(e, "a changed resource", "cause Object Updated Resource it spec", "finished it",
		"call update ConfigMap it-child/ by "+in+`.1.Child data[value] "1"→"2"`)
	change(e, settings, func(s *corev1.Secret) { s.StringData = map[string]string{"password": "hunter3"} })
	seen.await(e, "a changed tracked object", "cause Tracked Updated Secret settings data", "finished it")
	child := newConfigMap("it-child", nil)
	child.Namespace = e.Namespace
	change(e, child, func(c *corev1.ConfigMap) { c.Data["value"] = "edited" })
	seen.await(e, "an edited child", "cause Owned Updated ConfigMap it-child data",
		"call update ConfigMap it-child/ by "+in+`.1.Child data[value] "edited"→"2"`)
	change(e, it, func(r *fixture.Resource) { r.Spec.Fields["then"] = "again" })
	seen.await(e, "a requested requeue", "cause Requeue")
	change(e, it, func(r *fixture.Resource) { r.Spec.Fields["then"] = "fail" })
	seen.await(e, "a failure", "finished it, "+in+".0.Settings failed: not yet",
		"cause Retry    1 after "+in+".0.Settings: not yet", "cause Retry    2 after "+in+".0.Settings: not yet")
	change(e, it, func(r *fixture.Resource) { delete(r.Spec.Fields, "then") })
	seen.await(e, "a repaired failure", "finished it")
	nudges <- event.GenericEvent{Object: it}
	seen.await(e, "a source that is not a watch", "cause Source")
	stop()
	e.start(setups)
	seen.await(e, "a second start", "cause StartUp Created Resource it")
}

// The controllers of an InformerController have the listeners of the manager.
func TestWhyDidItRun_informers(t *testing.T) {
	e := newEnv(t)
	seen, watcher := &log{}, &calls{}
	e.start(func(ctx context.Context, mgr ctrl.Manager, _ reconcilers.Config) error {
		observe.Of(mgr).Add(seen)
		c := operator.NewInformerController(operator.InformerControllerConfig{})
		informer := e.supply(informer.DefaultSupplier, mgr, informer.Options{})
		e.Must(errors.Join(c.AddInformer(informer, "test"), c.AddWatcher(watcher, "test")))
		return c.SetupWithManager(ctx, mgr)
	})
	e.Add(newConfigMap("it", map[string]string{"value": "1"}))
	watcher.until(e, "add it 1")
	seen.await(e, "creation", "step test.0.Watcher Succeeded", "finished it")
	change(e, newConfigMap("it", nil), func(cm *corev1.ConfigMap) { cm.Data = map[string]string{"value": "2"} })
	watcher.until(e, "update it 1>2")
	seen.await(e, "update", "cause Object Updated ConfigMap it data", "finished it")
}
