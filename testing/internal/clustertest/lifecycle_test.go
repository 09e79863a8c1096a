// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/apis"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
)

const finalizer = "trueup.dev/finalizer"

func TestGivenStatus(t *testing.T) {
	given := newResource("given")
	given.Generation = 4
	given.Spec.Fields = map[string]string{"a": "1"}
	given.Status = fixture.ResourceStatus{
		Status: apis.Status{ObservedGeneration: 3, Conditions: []metav1.Condition{{
			Type: apis.ConditionReady, Status: metav1.ConditionTrue, Reason: "Ready", LastTransitionTime: metav1.NewTime(
				noon.Local(),
			),
		}}},
		Fields: map[string]string{"b": "2"},
	}
	runOnBoth(t, testCase{
		GivenObjects: []client.Object{given},
	}, func(w *world) {
		read := &fixture.Resource{}
		w.must(w.Get(w.ctx, client.ObjectKeyFromObject(given), read))
		want := given.DeepCopy()
		want.ResourceVersion, want.CreationTimestamp = "999", metav1.Unix(1, 0)
		if diff := cmp.Diff(want, read); diff != "" {
			w.Errorf("as it is read (-want +got):\n%s", diff)
		}
	})
}

func TestStatusAndGenerationMove(t *testing.T) {
	given := newResource("given")
	given.Generation = 4
	withStatus, withSpec := given.DeepCopy(), given.DeepCopy()
	withStatus.Status.Fields = map[string]string{"seen": "yes"}
	withSpec.Spec.Fields = map[string]string{"a": "1"}
	withBoth := withSpec.DeepCopy()
	withBoth.Generation, withBoth.Status = 5, withStatus.Status
	withSpec.Status.Fields = map[string]string{"ignored": "yes"}
	runOnBoth(t, testCase{
		Realistic:           true,
		GivenObjects:        []client.Object{given},
		ExpectUpdates:       []client.Object{withSpec, withBoth},
		ExpectStatusUpdates: []client.Object{withStatus},
	}, func(w *world) {
		read := &fixture.Resource{}
		w.must(w.Get(w.ctx, client.ObjectKeyFromObject(given), read))
		read.Status = withStatus.Status
		w.must(w.Status().Update(w.ctx, read))
		if read.Generation != 4 || read.ResourceVersion != "1000" {
			w.Errorf("after the update of the status: generation %d, version %s", read.Generation, read.ResourceVersion)
		}
		read.Spec, read.Status = withSpec.Spec, withSpec.Status
		w.must(w.Update(w.ctx, read))
		if read.Generation != 5 || read.ResourceVersion != "1001" {
			w.Errorf("after the update of the spec: generation %d, version %s", read.Generation, read.ResourceVersion)
		}
		if diff := cmp.Diff(withStatus.Status, read.Status); diff != "" {
			w.Errorf("status after the update of the spec (-want +got):\n%s", diff)
		}
		w.must(w.Update(w.ctx, read.DeepCopy()))
		w.must(w.Get(w.ctx, client.ObjectKeyFromObject(given), read))
		if read.Generation != 5 || read.ResourceVersion != "1001" {
			w.Errorf("after an update that changes nothing: generation %d, version %s", read.Generation, read.ResourceVersion)
		}
	})
}

func TestGivenDeletion(t *testing.T) {
	given := newConfigMap("given")
	given.DeletionTimestamp = new(metav1.NewTime(noon.Local()))
	given.Finalizers = []string{finalizer}
	released := given.DeepCopy()
	released.Finalizers = nil
	runOnBoth(t, testCase{
		GivenObjects:  []client.Object{given},
		ExpectUpdates: []client.Object{released},
	}, func(w *world) {
		read := newConfigMap("given")
		w.must(w.Get(w.ctx, client.ObjectKeyFromObject(read), read))
		want := given.DeepCopy()
		want.ResourceVersion, want.CreationTimestamp = "999", metav1.Unix(1, 0)
		if diff := cmp.Diff(want, read); diff != "" {
			w.Errorf("as it is read (-want +got):\n%s", diff)
		}
		read.Finalizers = nil
		w.must(w.Update(w.ctx, read))
		if err := w.Get(w.ctx, client.ObjectKeyFromObject(read), read); !apierrs.IsNotFound(err) {
			w.Errorf("it still exists without its finalizer: %v, %v", read, err)
		}
	})
}

func TestDeletionIsHeldByFinalizers(t *testing.T) {
	given := newConfigMap("given")
	given.Finalizers = []string{finalizer}
	runOnBoth(t, testCase{
		Realistic:     true,
		GivenObjects:  []client.Object{given},
		ExpectDeletes: []rtesting.DeleteRef{rtesting.NewDeleteRefFromObject(given, scheme)},
	}, func(w *world) {
		w.must(w.Delete(w.ctx, given.DeepCopy()))
		read := newConfigMap("given")
		w.must(w.Get(w.ctx, client.ObjectKeyFromObject(read), read))
		want := given.DeepCopy()
		want.ResourceVersion, want.CreationTimestamp = "1000", metav1.Unix(1, 0)
		want.DeletionTimestamp, want.DeletionGracePeriodSeconds = new(metav1.NewTime(noon)), new(int64(0))
		if diff := cmp.Diff(
			want, read, cmp.Transformer("UTC", func(t metav1.Time) time.Time { return t.UTC() }),
		); diff != "" {
			w.Errorf("as it is read (-want +got):\n%s", diff)
		}
	})
}

// The names of objects are available to the next case, however the last case ended.
func TestNothingIsLeft(t *testing.T) {
	c := newCluster(t)
	held, created := newConfigMap("held"), newConfigMap("created")
	held.Finalizers, created.Finalizers = []string{finalizer}, []string{finalizer}
	tc := testCase{GivenObjects: []client.Object{held}, ExpectCreates: []client.Object{created}}
	for range 2 {
		tc.Run(t, scheme, doing(c, func(w *world) { w.must(w.Create(w.ctx, created.DeepCopy())) }), c.on())
		c.assertGone(t, held, created)
	}
	var ns corev1.Namespace
	if err := c.Get(t.Context(), client.ObjectKey{Name: namespace}, &ns); err != nil ||
		ns.Labels["trueup.dev/made-by"] == "" {
		t.Errorf("the namespace is %v, %v", ns, err)
	}
}

// assertGone asserts that objects do not exist.
func (c *cluster) assertGone(t *testing.T, objs ...client.Object) {
	t.Helper()
	for _, obj := range objs {
		read := obj.DeepCopyObject().(client.Object)
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), read); !apierrs.IsNotFound(err) {
			t.Errorf("%s still exists after the case: %v, %v", obj.GetName(), read, err)
		}
	}
}

// A case panics, or its reconciler ends the test.
func TestCleanUpAfterTheWorst(t *testing.T) {
	c := newCluster(t)
	for name, end := range map[string]func(w *world){
		"Panic": func(*world) { panic("on purpose") },
		"Skip":  func(w *world) { w.SkipNow() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Run("case", func(t *testing.T) {
				defer func() {
					if cause := recover(); cause != nil && cause != "on purpose" {
						panic(cause)
					}
				}()
				tc := testCase{
					GivenObjects: []client.Object{newConfigMap("given")}, ExpectCreates: []client.Object{newConfigMap("created")},
				}
				tc.Run(t, scheme, doing(c, func(w *world) {
					w.must(w.Create(w.ctx, newConfigMap("created")))
					end(w)
				}), c.on())
			})
			c.assertGone(t, newConfigMap("given"), newConfigMap("created"))
		})
	}
}

func TestAdditionalReconcilesHaveTheirOwnObjects(t *testing.T) {
	runs := 0
	c := newCluster(t)
	again := subCase{
		Name: "again", Resource: newResource("resource"), GivenObjects: []client.Object{newConfigMap("given")},
	}
	tc := again
	tc.AdditionalReconciles = []subCase{again, again}
	tc.Run(t, scheme, func(t *testing.T, _ *subCase, _ reconcilers.Config) reconcilers.SubReconciler[*fixture.Resource] {
		return &reconcilers.SyncReconciler[*fixture.Resource]{Sync: func(ctx context.Context, _ *fixture.Resource) error {
			runs++
			var list corev1.ConfigMapList
			if err := reconcilers.RetrieveConfigOrDie(ctx).List(ctx, &list); err != nil || len(list.Items) != 1 {
				t.Errorf("%d ConfigMaps, %v", len(list.Items), err)
			}
			return nil
		}}
	}, c.on())
	if runs != 3 {
		t.Errorf("%d runs, want 3", runs)
	}
}
