// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
)

// verbs are writes to the ConfigMaps "plain", "held", which has a finalizer, and "leaving", which has a finalizer and
// is terminating.
var verbs = map[string]func(ctx context.Context, c client.Client) error{
	"create": func(ctx context.Context, c client.Client) error { return c.Create(ctx, configMap("new")) },
	"create with a generated name": func(ctx context.Context, c client.Client) error {
		obj := configMap("")
		obj.GenerateName = "new-"
		return c.Create(ctx, obj)
	},
	"update": func(ctx context.Context, c client.Client) error {
		return change(ctx, c, "plain", func(cm *corev1.ConfigMap) error {
			cm.Data = map[string]string{"changed": "yes"}
			return c.Update(ctx, cm)
		})
	},
	"two updates": func(ctx context.Context, c client.Client) error {
		return change(ctx, c, "plain", func(cm *corev1.ConfigMap) error {
			cm.Data = map[string]string{"changed": "yes"}
			if err := c.Update(ctx, cm); err != nil {
				return err
			}
			cm.Data["again"] = "yes"
			return c.Update(ctx, cm)
		})
	},
	"patch": func(ctx context.Context, c client.Client) error {
		return c.Patch(
			ctx, configMap("plain"), client.RawPatch("application/merge-patch+json", []byte(`{"data":{"changed":"yes"}}`)),
		)
	},
	"apply": func(ctx context.Context, c client.Client) error {
		return c.Apply(
			ctx, applycorev1.ConfigMap("plain", "default").WithData(map[string]string{"changed": "yes"}),
			client.FieldOwner("test"),
		)
	},
	"delete": func(ctx context.Context, c client.Client) error { return c.Delete(ctx, configMap("plain")) },
	"delete by name": func(ctx context.Context, c client.Client) error {
		return c.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "plain"}})
	},
	"delete by name and UID": func(ctx context.Context, c client.Client) error {
		obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "plain"}}
		return c.Delete(ctx, obj, client.Preconditions{UID: &configMap("plain").UID})
	},
	"delete with a finalizer": func(ctx context.Context, c client.Client) error {
		return c.Delete(ctx, configMap("held"))
	},
	"delete all of": func(ctx context.Context, c client.Client) error {
		return c.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace("default"), client.MatchingLabels{"app": "test"})
	},
	"add a finalizer": func(ctx context.Context, c client.Client) error {
		return change(ctx, c, "plain", func(cm *corev1.ConfigMap) error {
			before := cm.DeepCopy()
			cm.Finalizers = []string{"test.trueup.dev/held"}
			return c.Patch(ctx, cm, client.MergeFrom(before))
		})
	},
	"clear the last finalizer": func(ctx context.Context, c client.Client) error {
		return change(ctx, c, "leaving", func(cm *corev1.ConfigMap) error {
			before := cm.DeepCopy()
			cm.Finalizers = nil
			return c.Patch(ctx, cm, client.MergeFrom(before))
		})
	},
	"delete and create again": func(ctx context.Context, c client.Client) error {
		if err := c.Delete(ctx, configMap("plain")); err != nil {
			return err
		}
		again := configMap("plain")
		again.UID = "uid-of-another"
		return c.Create(ctx, again)
	},
	"create and delete": func(ctx context.Context, c client.Client) error {
		if err := c.Delete(ctx, configMap("plain")); err != nil {
			return err
		}
		passing := configMap("passing")
		if err := c.Create(ctx, passing); err != nil {
			return err
		}
		return c.Delete(ctx, passing)
	},
}

// change reads from the cache, as reconcilers do, and passes the object to do.
func change(ctx context.Context, c client.Client, name string, do func(cm *corev1.ConfigMap) error) error {
	cm := &corev1.ConfigMap{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, cm); err != nil {
		return err
	}
	return do(cm)
}

func given(t *testing.T) *world {
	t.Helper()
	w := newWorld(
		t, configMap("plain"), configMap("held", "test.trueup.dev/held"), configMap("leaving", "test.trueup.dev/held"),
	)
	w.must(w.server.Delete(t.Context(), configMap("leaving")))
	w.catchUp()
	return w
}

func TestGate_EveryWriteIsWaitedFor(t *testing.T) {
	for verb, do := range verbs {
		for formName, newObject := range forms {
			for _, reportsVersion := range []bool{true, false} {
				name := verb + ", read " + formName
				if !reportsVersion {
					name += ", from a cache that does not report its resource version"
				}
				t.Run(name, func(t *testing.T) {
					w := given(t)
					w.reportsVersion = reportsVersion
					w.cluster.Watch(newObject())
					wait, _ := w.reconcile(func(ctx context.Context, c client.Client) {
						w.must(client.IgnoreNotFound(c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "any"}, newObject())))
						w.must(do(ctx, c))
					})
					if wait > 0 {
						t.Fatalf("the first request was deferred for %v", wait)
					}
					for range 3 {
						if wait, _ := w.reconcile(nil); wait <= 0 || wait > lastPoll {
							t.Fatalf("before the cache observed the write, the request is deferred for %v, want up to %v", wait, lastPoll)
						}
					}
					w.catchUp()
					if wait, live := w.reconcile(nil); wait > 0 || live {
						t.Errorf("after the cache observed the write, the request is deferred for %v, reads live: %v", wait, live)
					}
					if w.kept() > 0 {
						t.Errorf("got %d journals, want none", w.kept())
					}
				})
			}
		}
	}
}

func TestGate_SubResources(t *testing.T) {
	resource := func() *fixture.Resource {
		return &fixture.Resource{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "test", UID: "uid-of-test"}}
	}
	pod := func() *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "test", UID: "uid-of-pod"}}
	}
	for name, do := range map[string]func(ctx context.Context, c client.Client) error{
		"status update": func(ctx context.Context, c client.Client) error {
			obj := &fixture.Resource{}
			if err := c.Get(ctx, request.NamespacedName, obj); err != nil {
				return err
			}
			obj.Status.Fields = map[string]string{"changed": "yes"}
			return c.Status().Update(ctx, obj)
		},
		"status patch": func(ctx context.Context, c client.Client) error {
			patch := []byte(`{"status":{"fields":{"changed":"yes"}}}`)
			return c.Status().Patch(ctx, resource(), client.RawPatch("application/merge-patch+json", patch))
		},
		"status apply": func(ctx context.Context, c client.Client) error {
			status := applycorev1.PodStatus().WithMessage("changed")
			return c.Status().Apply(ctx, applycorev1.Pod("test", "default").WithStatus(status), client.FieldOwner("test"))
		},
		"eviction": func(ctx context.Context, c client.Client) error {
			return c.SubResource("eviction").Create(ctx, pod(), &policyv1.Eviction{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, resource(), pod())
			if wait, _ := w.reconcile(func(ctx context.Context, c client.Client) {
				w.must(c.List(ctx, &fixture.ResourceList{}))
				w.must(c.List(ctx, &corev1.PodList{}))
				w.must(do(ctx, c))
			}); wait > 0 {
				t.Fatalf("the first request was deferred for %v", wait)
			}
			if wait, _ := w.reconcile(nil); wait == 0 {
				t.Error("the request is not deferred before the cache observed the write")
			}
			w.catchUp()
			if wait, live := w.reconcile(nil); wait > 0 || live {
				t.Errorf("after the cache observed the write, the request is deferred for %v, reads live: %v", wait, live)
			}
		})
	}
}

func TestGate_NothingToWaitFor(t *testing.T) {
	read := func(ctx context.Context, c client.Client) error { return c.List(ctx, &corev1.ConfigMapList{}) }
	for name, do := range map[string]func(ctx context.Context, c client.Client) error{
		"nothing was written": read,
		"a kind that is never read": func(ctx context.Context, c client.Client) error {
			return c.Create(ctx, configMap("new"))
		},
		"dry runs": func(ctx context.Context, c client.Client) error {
			if err := read(ctx, c); err != nil {
				return err
			}
			if err := c.Create(ctx, configMap("new"), client.DryRunAll); err != nil {
				return err
			}
			return c.Delete(ctx, configMap("plain"), client.DryRunAll)
		},
		"outside of a request": func(_ context.Context, c client.Client) error {
			if err := read(context.Background(), c); err != nil {
				return err
			}
			return c.Create(context.Background(), configMap("new"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := given(t)
			w.reconcile(func(ctx context.Context, c client.Client) { w.must(do(ctx, c)) })
			if wait, live := w.reconcile(nil); wait > 0 || live {
				t.Errorf("the request is deferred for %v, reads live: %v", wait, live)
			}
			if w.kept() > 0 {
				t.Errorf("got %d journals, want none", w.kept())
			}
		})
	}
}

func TestNoVerbWritesWhileTheClusterIsFenced(t *testing.T) {
	for verb, do := range verbs {
		t.Run(verb, func(t *testing.T) {
			if w := reconcileFenced(t, do, 1); w.kept() > 0 {
				t.Errorf("got %d journals, want none", w.kept())
			}
		})
	}
}

// A lease may expire while a write is prepared, with reads that take long.
func TestNoVerbWritesIfTheClusterIsFencedMeanwhile(t *testing.T) {
	for verb, do := range verbs {
		t.Run(verb, func(t *testing.T) { reconcileFenced(t, do, 2) })
	}
}

// reconcileFenced executes a verb on a cluster that is fenced from this check on, and expects that nothing is written.
func reconcileFenced(t *testing.T, do func(context.Context, client.Client) error, from int) *world {
	t.Helper()
	refused := errors.New("refused")
	w, checks := given(t), 0
	w.cluster.Fence(func() error {
		if checks++; checks >= from {
			return refused
		}
		return nil
	})
	before, after := &corev1.ConfigMapList{}, &corev1.ConfigMapList{}
	w.must(w.server.List(t.Context(), before))
	w.reconcile(func(ctx context.Context, c client.Client) {
		if err := do(ctx, c); !errors.Is(err, refused) {
			t.Errorf("got the error %v, want %v", err, refused)
		}
	})
	w.must(w.server.List(t.Context(), after))
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("objects on the server (-before +after):\n%s", diff)
	}
	return w
}
