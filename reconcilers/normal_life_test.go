// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// rollOut writes the replicas of the child, and copies what another controller reports in the child to the status.
func rollOut(ctx context.Context, _ *loopWorld, r *fixture.Resource) (reconcilers.Result, error) {
	c, child := reconcilers.RetrieveConfigOrDie(ctx), &corev1.ConfigMap{}
	err := c.Get(ctx, types.NamespacedName{Namespace: r.Namespace, Name: "child"}, child)
	replicas := r.Spec.Fields["replicas"]
	switch {
	case client.IgnoreNotFound(err) != nil:
		return reconcilers.Result{}, err
	case err != nil:
		child = wanted("child")
		child.Data = map[string]string{"replicas": replicas}
		err = c.Create(ctx, child)
	case child.Data["replicas"] != replicas:
		child.Data["replicas"] = replicas
		err = c.Update(ctx, child)
	default:
		err = nil
	}
	phase := "Progressing"
	if child.Data["ready"] == replicas {
		phase = "Ready"
	}
	r.Status.Fields = map[string]string{"phase": phase, "ready": child.Data["ready"]}
	return reconcilers.Result{}, err
}

// editChild changes an entry of the child like another client.
func (l *loopWorld) editChild(key, value string) {
	l.t.Helper()
	child := stored(l.world, newConfigMap("child"))
	child.Data[key] = value
	wantErr(l.t, nil, l.Server.Update(context.Background(), child, client.FieldOwner("another")))
}

// scale changes the spec like a user, and lets another controller report one replica after the other.
func (l *loopWorld) scale(replicas int) {
	l.t.Helper()
	r := stored(l.world, newResource())
	r.Spec.Fields = map[string]string{"replicas": fmt.Sprint(replicas)}
	wantErr(l.t, nil, l.Config.Update(context.Background(), r))
	l.run(time.Second)
	for ready := range replicas + 1 {
		l.editChild("ready", fmt.Sprint(ready))
		l.run(time.Second)
	}
}

// TestIsItLooping_NotInADayOfNormalLife simulates resyncs, rollouts, changes by users, restarts and progress.
func TestIsItLooping_NotInADayOfNormalLife(t *testing.T) {
	w := newWorld(t, newResource(settled))
	l := newLoopWorldOn(w, rollOut)
	synctest.Test(t, func(t *testing.T) {
		found := apitest.Counted(t, "trueup_hot_loops_total", nil)
		waits := apitest.Counted(t, "trueup_hot_loop_waits_total", nil)
		for tick := range 24 * 6 {
			switch {
			case tick%12 == 0:
				l.scale(1 + tick/12%2) // the spec alternates between two values
			case tick == 40:
				l.scale(60)
			case tick%36 == 17:
				l.editChild("replicas", "100") // a user tries four times to scale the child
			case tick%5 == 2:
				l.editChild("other", fmt.Sprint(tick%2)) // a field that the controller does not write
			case tick == 71:
				l.reconcile = newLoopWorldOn(w, rollOut).reconcile // a restart
			}
			l.run(time.Second) // the resync
			time.Sleep(10 * time.Minute)
		}
		if l.requests < 300 {
			t.Errorf("%d requests in a day, want at least 300", l.requests)
		}
		equal(t, "phase", "Ready", stored(w, newResource()).Status.Fields["phase"])
		equal(t, "events about hot loops", nil, l.warnings())
		equal(t, "events about conflicts", nil, l.conflicts)
		equal(t, "hot loops", 0, apitest.Counted(t, "trueup_hot_loops_total", nil)-found)
		equal(t, "delayed requests", 0, apitest.Counted(t, "trueup_hot_loop_waits_total", nil)-waits)
	})
}
