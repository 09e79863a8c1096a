// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestGate_Model runs a controller with random writes behind a cache that catches up at random times. A reconcile that
// reads from the cache must never see an object in an older state than after its own last write.
func TestGate_Model(t *testing.T) {
	const runs, steps = 500, 60
	checked, live, waits := 0, 0, 0
	for seed := range uint64(runs) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			w := newWorld(t)
			w.reportsVersion = seed%2 == 0
			w.cluster.Watch(&corev1.ConfigMap{})
			expected := map[string]state{}
			for step := range steps {
				if random.IntN(3) == 0 {
					w.catchUp()
				}
				if random.IntN(8) == 0 {
					w.foreign(random, expected)
				}
				wait, readLive := w.reconcile(func(ctx context.Context, c client.Client) {
					for name, want := range expected {
						cm := &corev1.ConfigMap{}
						err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, cm)
						w.must(client.IgnoreNotFound(err))
						if problem := want.contradicted(cm, apierrs.IsNotFound(err)); problem != "" {
							t.Fatalf("seed %d, step %d: %s: %s", seed, step, name, problem)
						}
						checked++
					}
					if random.IntN(2) == 0 {
						w.own(ctx, c, random, expected)
					}
				})
				switch {
				case wait > 0:
					waits++
					time.Sleep(wait)
				case readLive:
					live++
				}
			}
		})
	}
	t.Logf("checked %d reads, %d requests read live, %d were deferred", checked, live, waits)
	if checked < runs*steps || waits < runs {
		t.Errorf("checked only %d reads, and %d requests were deferred", checked, waits)
	}
}

// state is the state of an object after a write.
type state struct {
	uid, version string
	// deleted objects are at least terminating, gone objects no longer exist.
	deleted, gone bool
}

func (s state) contradicted(cm *corev1.ConfigMap, missing bool) string {
	switch {
	case missing && (s.deleted || s.gone):
		return ""
	case missing:
		// Objects that another client may have deleted are removed from the expectations.
		return "was written but does not exist"
	case s.deleted && string(cm.UID) == s.uid && cm.DeletionTimestamp == nil:
		return "was deleted but exists"
	case s.gone && string(cm.UID) == s.uid:
		return "lost its last finalizer but exists"
	case !s.gone && !s.deleted && older(cm.ResourceVersion, s.version):
		return fmt.Sprintf("has version %s, older than %s", cm.ResourceVersion, s.version)
	}
	return ""
}

// own performs one or two writes of the controller.
func (w *world) own(ctx context.Context, c client.Client, random *rand.Rand, expected map[string]state) {
	for range 1 + random.IntN(2) {
		name := fmt.Sprintf("cm-%d", random.IntN(3))
		key := client.ObjectKey{Namespace: "default", Name: name}
		cm := &corev1.ConfigMap{}
		if err := c.Get(ctx, key, cm); err != nil {
			cm = configMap(name)
			cm.UID = configMap(fmt.Sprintf("%s-%d", name, random.Uint64())).UID
			if random.IntN(3) == 0 {
				cm.Finalizers = []string{"test.trueup.dev/held"}
			}
			if err := c.Create(ctx, cm); err == nil {
				expected[name] = state{uid: string(cm.UID), version: cm.ResourceVersion}
			}
			continue
		}
		switch random.IntN(4) {
		case 0:
			if err := c.Delete(ctx, cm); err == nil {
				expected[name] = state{uid: string(cm.UID), deleted: true}
			}
		case 1:
			before := cm.DeepCopy()
			cm.Finalizers = nil
			if err := c.Patch(ctx, cm, client.MergeFrom(before)); err == nil {
				expected[name] = state{uid: string(cm.UID), version: cm.ResourceVersion, gone: cm.DeletionTimestamp != nil}
			}
		default:
			cm.Data = map[string]string{"value": fmt.Sprint(random.Uint64())}
			if err := c.Update(ctx, cm); err == nil {
				expected[name] = state{
					uid:     string(cm.UID),
					version: cm.ResourceVersion,
					gone:    cm.DeletionTimestamp != nil && len(cm.Finalizers) == 0,
				}
			}
		}
	}
}

// foreign lets another client delete an object. The controller need not have observed the deletion.
func (w *world) foreign(random *rand.Rand, expected map[string]state) {
	name := fmt.Sprintf("cm-%d", random.IntN(3))
	cm := configMap(name)
	cm.Finalizers = nil
	if err := w.server.Delete(context.Background(), cm); err == nil {
		delete(expected, name)
	}
}
