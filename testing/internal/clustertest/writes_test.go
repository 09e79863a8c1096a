// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	rtesting "trueup.dev/testing"
)

func TestApply(t *testing.T) {
	owner := newResource("owner")
	owner.UID = "uid-of-the-case"
	applied := func() *corev1ac.ConfigMapApplyConfiguration {
		return corev1ac.ConfigMap("applied", namespace).WithData(map[string]string{"a": "1"}).
			WithOwnerReferences(metav1ac.OwnerReference().
				WithAPIVersion("fixture.trueup.dev/v1").WithKind("Resource").WithName("owner").WithUID("uid-of-the-case"))
	}
	second := applied().WithData(map[string]string{"b": "2"}).WithResourceVersion("1")
	ref := func(ac *corev1ac.ConfigMapApplyConfiguration) rtesting.ApplyRef {
		return rtesting.NewApplyRef(rtesting.NewApplyAction(ac))
	}
	runOnBoth(t, testCase{
		Realistic:     true,
		GivenObjects:  []client.Object{owner},
		ExpectApplies: []rtesting.ApplyRef{ref(applied()), ref(second)},
	}, func(w *world) {
		ac := applied()
		w.must(w.Apply(w.ctx, ac, client.FieldOwner("me")))
		w.assertOwners("applied", "owner")
		if *ac.ResourceVersion != "1" || *ac.UID != "00000000-0000-0000-0000-000000000001" ||
			*ac.OwnerReferences[0].UID != "uid-of-the-case" {
			w.Errorf("the result has version %s, uid %s, owner %v", *ac.ResourceVersion, *ac.UID, ac.OwnerReferences[0])
		}
		ac = applied().WithData(map[string]string{"b": "2"}).WithResourceVersion("1")
		w.must(w.Apply(w.ctx, ac, client.FieldOwner("me")))
		read := newConfigMap("applied")
		w.must(w.Get(w.ctx, client.ObjectKeyFromObject(read), read))
		if diff := cmp.Diff([]metav1.OwnerReference{ownedBy(owner, false)}, read.OwnerReferences); diff != "" ||
			read.ResourceVersion != "2" {
			w.Errorf("version %s, owners (-want +got):\n%s", read.ResourceVersion, diff)
		}
	})
}

func TestStatusPatch(t *testing.T) {
	given := newResource("given")
	given.Generation = 3
	runOnBoth(t, testCase{
		GivenObjects: []client.Object{given},
		ExpectStatusPatches: []rtesting.PatchRef{{
			Group: "fixture.trueup.dev", Kind: "Resource", Namespace: namespace, Name: "given", SubResource: "status",
			PatchType: "application/merge-patch+json",
			Patch:     []byte(`{"metadata":{"resourceVersion":"999"},"status":{"fields":{"a":"1"}}}`),
		}},
	}, func(w *world) {
		read := &fixture.Resource{}
		w.must(w.Get(w.ctx, client.ObjectKeyFromObject(given), read))
		base := read.DeepCopy()
		read.Status.Fields = map[string]string{"a": "1"}
		w.must(w.Status().Patch(w.ctx, read, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})))
		want := base.DeepCopy()
		want.ResourceVersion, want.Status.Fields = "1000", map[string]string{"a": "1"}
		if diff := cmp.Diff(want, read); diff != "" {
			w.Errorf("returned (-want +got):\n%s", diff)
		}
	})
}

// Writes to all subresources have an effect on a cluster, and in memory if a case is Realistic.
func TestSubResources(t *testing.T) {
	deployment := newDeployment()
	deployment.UID, deployment.Generation = "uid-of-the-case", 1
	deployment.Spec.Replicas = new(int32(1))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pod", Finalizers: []string{finalizer}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "pod", Image: "nginx"}}},
	}
	scale := &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "web", UID: "uid-of-the-case", ResourceVersion: "999",
			CreationTimestamp: metav1.Unix(1, 0),
		},
		Spec: autoscalingv1.ScaleSpec{Replicas: 3},
	}
	runOnBoth(t, testCase{
		Realistic:    true,
		GivenObjects: []client.Object{deployment, pod},
		ExpectSubResources: []rtesting.SubResourceRef{
			{
				Verb: "update", Group: "apps", Kind: "Deployment", Namespace: namespace, Name: "web", SubResource: "scale",
				Body: scale,
			},
			{
				Verb: "update", Group: "apps", Kind: "Deployment", Namespace: namespace, Name: "web", SubResource: "scale",
				Body: scale,
			},
			{
				Verb: "create", Kind: "Pod", Namespace: namespace, Name: "pod", SubResource: "eviction",
				Body: &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pod"}},
			},
		},
	}, func(w *world) {
		read := &autoscalingv1.Scale{}
		w.must(w.SubResource("scale").Get(w.ctx, deployment.DeepCopy(), read))
		if read.Spec.Replicas != 1 || read.UID != "uid-of-the-case" || read.ResourceVersion != "999" {
			w.Errorf("the scale is %v", read)
		}
		read = scale.DeepCopy()
		w.must(w.SubResource("scale").Update(w.ctx, deployment.DeepCopy(), client.WithSubResourceBody(read)))
		if w.cluster == nil {
			read.ResourceVersion = "1000" // in memory it is the version that was sent
		}
		if read.Spec.Replicas != 3 || read.UID != "uid-of-the-case" || read.ResourceVersion != "1000" {
			w.Errorf("the scale is, after an update, %v", read)
		}
		err := w.SubResource("scale").Update(w.ctx, deployment.DeepCopy(), client.WithSubResourceBody(scale.DeepCopy()))
		if w.cluster != nil && !apierrs.IsConflict(err) {
			w.Errorf("an update of an old version returns %v, want a conflict", err)
		}
		scaled := newDeployment()
		w.must(w.Get(w.ctx, client.ObjectKeyFromObject(scaled), scaled))
		if *scaled.Spec.Replicas != 3 || scaled.Generation != 2 || scaled.ResourceVersion != "1000" {
			w.Errorf(
				"the deployment has %d replicas, generation %d, version %s", *scaled.Spec.Replicas, scaled.Generation,
				scaled.ResourceVersion,
			)
		}
		w.must(
			w.SubResource("eviction").Create(w.ctx, pod.DeepCopy(), &policyv1.Eviction{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pod"},
			}),
		)
	})
}

// A deleted object can be created again, by every call that creates objects.
func TestMadeAgain(t *testing.T) {
	applied := corev1ac.ConfigMap("given", namespace).WithData(map[string]string{"made": "again"})
	deleted := rtesting.DeleteRef{Kind: "ConfigMap", Namespace: namespace, Name: "given"}
	runOnBoth(t, testCase{
		GivenObjects:  []client.Object{newConfigMap("given")},
		ExpectDeletes: []rtesting.DeleteRef{deleted, deleted},
		ExpectApplies: []rtesting.ApplyRef{rtesting.NewApplyRef(rtesting.NewApplyAction(applied))},
		ExpectCreates: []client.Object{newConfigMap("given")},
	}, func(w *world) {
		isThere := func(want string) {
			w.Helper()
			read := newConfigMap("given")
			w.must(w.Get(w.ctx, client.ObjectKeyFromObject(read), read))
			if read.Data["made"] != want || read.ResourceVersion != "1" {
				w.Errorf("it is %v", read)
			}
		}
		w.must(w.Delete(w.ctx, newConfigMap("given")))
		w.must(
			w.Apply(
				w.ctx, corev1ac.ConfigMap("given", namespace).WithData(map[string]string{"made": "again"}), client.FieldOwner("me"),
			),
		)
		isThere("again")
		w.must(w.Delete(w.ctx, newConfigMap("given")))
		w.must(w.Create(w.ctx, newConfigMap("given")))
		isThere("")
	})
}
