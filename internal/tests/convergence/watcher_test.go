// SPDX-License-Identifier: Apache-2.0

package convergence

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"trueup.dev/converge"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/operator"
	"trueup.dev/reconcilers"
	"trueup.dev/resource"
)

// mirror is a watcher that keeps one thing outside of the cluster for each object.
type mirror[T resource.Object] struct {
	env    converge.Env
	prefix string
	value  func(T) string
}

func (m mirror[T]) Add(ctx context.Context, object T) error {
	return put(ctx, m.env, m.prefix+object.GetName(), m.value(object))
}

func (m mirror[T]) Update(ctx context.Context, previous, object T) error {
	if previous.GetUID() != object.GetUID() {
		return errors.New("the previous object is another one")
	}
	return m.Add(ctx, object)
}

func (m mirror[T]) Delete(ctx context.Context, object T) error {
	return drop(ctx, m.env, m.prefix+object.GetName())
}

// syncedMirror receives the objects that an earlier process has handled.
type syncedMirror[T resource.Object] struct{ mirror[T] }

func (m syncedMirror[T]) Sync(ctx context.Context, object T) error { return m.Add(ctx, object) }

func resourceMirror(env converge.Env) mirror[*fixture.Resource] {
	return mirror[*fixture.Resource]{env, "thing ", func(r *fixture.Resource) string { return r.Spec.Fields["value"] }}
}

// handled is a scenario with a controller that calls handlers for Resources.
func handled(t *testing.T, build func(env converge.Env) []sub) converge.Scenario {
	t.Helper()
	s := under(t, nil)
	s.Setup = func(mgr ctrl.Manager) error {
		c := &operator.Controller[*fixture.Resource]{
			Handlers: build(converge.EnvOf(mgr)), Config: reconcilers.NewConfig(mgr, nil, time.Hour),
		}
		return c.SetupWithManager(t.Context(), mgr)
	}
	s.Steps = append(s.Steps, again(newResource("three"), newResource("four"))...)
	return s
}

func TestOpinionatedWatcher(t *testing.T) {
	for name, build := range map[string]func(env converge.Env) *operator.Opinionated[*fixture.Resource]{
		"plain": func(env converge.Env) *operator.Opinionated[*fixture.Resource] {
			return operator.OpinionatedWatcher(finalizer, resourceMirror(env))
		},
		"with a Sync": func(env converge.Env) *operator.Opinionated[*fixture.Resource] {
			return operator.OpinionatedWatcher(finalizer, syncedMirror[*fixture.Resource]{resourceMirror(env)})
		},
		"with a finalizer in progress": func(env converge.Env) *operator.Opinionated[*fixture.Resource] {
			o := operator.OpinionatedWatcher(finalizer, resourceMirror(env))
			o.InProgressFinalizer = finalizer + "-in-progress"
			return o
		},
		"with a policy": func(env converge.Env) *operator.Opinionated[*fixture.Resource] {
			o := operator.OpinionatedWatcher(finalizer, resourceMirror(env))
			o.Handler.RetryPolicy = operator.BackoffPolicy{Jitter: -1}.Policy()
			return o
		},
	} {
		t.Run(name, func(t *testing.T) {
			prove(t, handled(t, func(env converge.Env) []sub { return []sub{build(env)} }))
		})
	}
}

// An object has the finalizer of an earlier version of the controller.
func TestOpinionatedWatcher_alias(t *testing.T) {
	s := handled(t, func(env converge.Env) []sub {
		o := operator.OpinionatedWatcher(finalizer, resourceMirror(env))
		o.Aliases = []string{"fixture.trueup.dev/former"}
		return []sub{o}
	})
	resource := newResource("one")
	resource.Finalizers = []string{"fixture.trueup.dev/former"}
	s.Given = objects(resource)
	s.Steps = append([]converge.Step{converge.Settle()}, converge.Lifecycle(resource, setField("value", "two"))[2:]...)
	prove(t, s)
}

// Several handlers have separate finalizers and failures.
func TestFanOut(t *testing.T) {
	prove(t, handled(t, func(env converge.Env) []sub {
		second := resourceMirror(env)
		second.prefix = "second "
		return []sub{
			operator.OpinionatedWatcher(finalizer, resourceMirror(env)),
			operator.OpinionatedWatcher(finalizer+"-2", second),
			newChild(generatedName),
		}
	}))
}

// ConfigMaps have neither a generation nor a status.
func TestOpinionatedWatcher_withoutGenerations(t *testing.T) {
	first := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "a"}, Data: map[string]string{"value": "one"},
	}
	second := first.DeepCopy()
	second.Data["value"] = "three"
	prove(t, converge.Scenario{
		Scheme: scheme,
		For:    &corev1.ConfigMap{},
		Setup: func(mgr ctrl.Manager) error {
			o := operator.OpinionatedWatcher(finalizer, mirror[*corev1.ConfigMap]{
				converge.EnvOf(mgr), "thing ", func(c *corev1.ConfigMap) string { return c.Data["value"] + c.Labels["label"] },
			})
			o.Handler.React |= operator.ReactLabels
			c := &operator.Controller[*corev1.ConfigMap]{
				Handlers: []reconcilers.SubReconciler[*corev1.ConfigMap]{o}, Config: reconcilers.NewConfig(mgr, nil, time.Hour),
			}
			return c.SetupWithManager(t.Context(), mgr)
		},
		Steps: append(converge.Lifecycle(first,
			func(c *corev1.ConfigMap) { c.Data["value"] = "two" },
			func(c *corev1.ConfigMap) { c.Labels = map[string]string{"label": "red"} },
		), converge.Lifecycle(second)...),
	})
}

// A watcher without a finalizer receives deletions only while it runs.
func TestWatcherReconciler(t *testing.T) {
	s := handled(t, func(env converge.Env) []sub { return []sub{operator.WatcherReconciler(resourceMirror(env))} })
	s.Without = map[converge.Fault]string{
		converge.FaultCrashBefore: missed, converge.FaultCrashAfter: missed, converge.FaultHandOver: missed,
		converge.FaultRestart: missed,
	}
	prove(t, s)
}

const missed = "without a finalizer a deletion is missed while there is no process, that is what OpinionatedWatcher " +
	"is for"

// A watcher may be part of a tree that has the finalizer.
func TestWatcherReconciler_inATree(t *testing.T) {
	s := under(t, func(env converge.Env) sub {
		watcher := operator.WatcherReconciler(resourceMirror(env))
		watcher.Finalizers = []string{finalizer}
		return protected(reconcilers.Sequence[*fixture.Resource]{watcher, newChild(fixedName)})
	})
	s.Steps = append(s.Steps, again(newResource("three"), newResource("four"))...)
	prove(t, s)
}

// A watcher that must wait returns a RequeueAfter.
func TestRequeueAfter(t *testing.T) {
	prove(t, handled(t, func(env converge.Env) []sub {
		return []sub{operator.OpinionatedWatcher(finalizer, waiting{resourceMirror(env)})}
	}))
}

// waiting requests another thing, and waits until it exists.
type waiting struct{ mirror[*fixture.Resource] }

func (p waiting) Add(ctx context.Context, object *fixture.Resource) error {
	_, err := p.env.Cloud.Get(ctx, "base")
	if errors.Is(err, converge.ErrAbsent) {
		if err := put(ctx, p.env, "base", "there"); err != nil {
			return err
		}
		return operator.RequeueAfter(time.Second)
	}
	if err != nil {
		return err
	}
	return p.mirror.Add(ctx, object)
}

func (p waiting) Update(ctx context.Context, _, object *fixture.Resource) error {
	return p.Add(ctx, object)
}

func (p waiting) Delete(ctx context.Context, object *fixture.Resource) error {
	return errors.Join(p.mirror.Delete(ctx, object), drop(ctx, p.env, "base"))
}
