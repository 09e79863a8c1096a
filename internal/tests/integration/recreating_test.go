// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/reconcilers"
)

// runOnce is a template of pods with a label.
func runOnce(app, image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "main", Image: image}}, RestartPolicy: corev1.RestartPolicyNever,
		},
	}
}

// recreate manages an object until the server has what is desired, and returns the number of deletions.
func recreate[T client.Object](e *env, manager reconcilers.ObjectManager[T], desired T) (deletions int) {
	e.Helper()
	config := reconcilers.Config{Client: e.Client, APIReader: e.Client, Recorder: &record.FakeRecorder{}}
	ctx := reconcilers.StashOriginalConfig(reconcilers.StashConfig(e.Context(), config), config)
	parent := newResource("parent", nil)
	parent.Namespace = e.Namespace
	e.Eventually(func() error {
		actual := desired.DeepCopyObject().(T)
		if err := e.Get(ctx, client.ObjectKeyFromObject(desired), actual); client.IgnoreNotFound(err) != nil {
			return err
		}
		if actual.GetDeletionTimestamp() != nil {
			return fmt.Errorf("%s is being deleted", actual.GetName())
		}
		managed, err := manager.Manage(ctx, parent, actual, desired.DeepCopyObject().(T))
		if err == nil && reflect.ValueOf(managed).IsNil() {
			deletions++
			return fmt.Errorf("%s was deleted", actual.GetName())
		}
		return err
	})
	return deletions
}

// The API server's refusals are recognized. With the propagation Orphan, the pods and claims of a StatefulSet remain.
func TestRecreatingObjectManager(t *testing.T) {
	e := newEnv(t)
	meta := metav1.ObjectMeta{Namespace: e.Namespace, Name: "child"}
	selects := func(app string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	}
	set := func(size string) *appsv1.StatefulSet {
		return &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(1)), Selector: selects("web"), ServiceName: "web",
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: selects("web").MatchLabels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "web"}}},
			},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
				ObjectMeta: metav1.ObjectMeta{Name: "data"},
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources: corev1.VolumeResourceRequirements{
						Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)},
					},
				},
			}},
		}}
	}
	deployment := func(app string) *appsv1.Deployment {
		template := runOnce(app, "web")
		template.Spec.RestartPolicy = corev1.RestartPolicyAlways
		return &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Selector: selects(app), Template: template}}
	}
	job := func(image string) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Template: runOnce("job", image)}}
	}

	jobs := &reconcilers.RecreatingObjectManager[*batchv1.Job]{
		Fields:  []string{"spec.template"},
		Manager: &reconcilers.ApplyingObjectManager[*batchv1.Job]{FieldOwner: "recreating"},
	}
	recreated(e, jobs, job("one"), job("two"))
	deployments := &reconcilers.RecreatingObjectManager[*appsv1.Deployment]{
		Manager: &reconcilers.ApplyingObjectManager[*appsv1.Deployment]{FieldOwner: "recreating"},
	}
	recreated(e, deployments, deployment("one"), deployment("two"))
	secrets := &reconcilers.RecreatingObjectManager[*corev1.Secret]{
		Manager: &reconcilers.UpdatingObjectManager[*corev1.Secret]{
			MergeBeforeUpdate: func(current, desired *corev1.Secret) { current.Type = desired.Type },
		},
	}
	recreated(e, secrets, &corev1.Secret{ObjectMeta: meta, Type: "example.com/one"},
		&corev1.Secret{ObjectMeta: meta, Type: "example.com/two"})

	sets := &reconcilers.RecreatingObjectManager[*appsv1.StatefulSet]{
		Propagation: metav1.DeletePropagationOrphan,
		Manager:     &reconcilers.ApplyingObjectManager[*appsv1.StatefulSet]{FieldOwner: "recreating"},
	}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: "data-child-0"}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: "child-0"}}
	equal(t, "deletions of the first set", 0, recreate(e, sets, set("1Gi")))
	until(e, pod, func(*corev1.Pod) error { return nil })
	until(e, claim, func(*corev1.PersistentVolumeClaim) error { return nil })
	before := []types.UID{pod.UID, claim.UID}
	equal(t, "deletions of the set", 1, recreate(e, sets, set("2Gi")))
	e.Must(e.Get(e.Context(), client.ObjectKeyFromObject(pod), pod))
	e.Must(e.Get(e.Context(), client.ObjectKeyFromObject(claim), claim))
	if diff := cmp.Diff(before, []types.UID{pod.UID, claim.UID}); diff != "" {
		t.Errorf("the pod or the claim was replaced (-want +got):\n%s", diff)
	}

	// A claim's access modes cannot change, bound or not, and it is not deleted.
	claimSpec := set("2Gi").Spec.VolumeClaimTemplates[0].Spec
	e.Add(&corev1.PersistentVolumeClaim{ObjectMeta: meta, Spec: *claimSpec.DeepCopy()})
	claimSpec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	config := reconcilers.Config{Client: e.Client, APIReader: e.Client, Recorder: &record.FakeRecorder{}}
	ctx := reconcilers.StashOriginalConfig(reconcilers.StashConfig(e.Context(), config), config)
	stored := &corev1.PersistentVolumeClaim{ObjectMeta: meta}
	claims := &reconcilers.RecreatingObjectManager[*corev1.PersistentVolumeClaim]{
		Manager: &reconcilers.UpdatingObjectManager[*corev1.PersistentVolumeClaim]{
			MergeBeforeUpdate: func(current, desired *corev1.PersistentVolumeClaim) {
				current.Spec.AccessModes = desired.Spec.AccessModes
			},
		},
	}
	e.Eventually(func() error { // the controller of volumes writes the claim, too
		e.Must(e.Get(ctx, client.ObjectKeyFromObject(stored), stored))
		_, err := claims.Manage(ctx, newResource("parent", nil), stored, &corev1.PersistentVolumeClaim{
			ObjectMeta: meta, Spec: claimSpec,
		})
		if err == nil || !strings.Contains(err.Error(), "set AllowDataLoss to accept that") {
			return fmt.Errorf("unexpected error: %w", err)
		}
		return nil
	})
	e.Must(e.Get(ctx, client.ObjectKeyFromObject(stored), stored))
}

// recreated expects one deletion when an object changes, and no further effect.
func recreated[T client.Object](e *env, manager reconcilers.ObjectManager[T], first, second T) {
	e.Helper()
	for i, want := range []int{0, 1, 0} {
		desired := second
		if i == 0 {
			desired = first
		}
		if got := recreate(e, manager, desired); got != want {
			e.Errorf("%T: %d deletions in round %d, want %d", desired, got, i+1, want)
		}
	}
}

func equal[V comparable](t *testing.T, what string, want, got V) {
	t.Helper()
	if want != got {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
