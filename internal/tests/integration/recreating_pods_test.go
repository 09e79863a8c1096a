// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// migration is a Job with the name of its parent. Its template changes with the field image.
func migration() reconcilers.SubReconciler[*fixture.Resource] {
	return &reconcilers.ChildReconciler[*fixture.Resource, *batchv1.Job, *batchv1.JobList]{
		DesiredChild: func(_ context.Context, parent *fixture.Resource) (*batchv1.Job, error) {
			return &batchv1.Job{
				ObjectMeta: metav1.ObjectMeta{Namespace: parent.Namespace, Name: parent.Name},
				Spec:       batchv1.JobSpec{Template: runOnce("migration", parent.Spec.Fields["image"])},
			}, nil
		},
		ChildObjectManager: &reconcilers.RecreatingObjectManager[*batchv1.Job]{
			Manager: &reconcilers.ApplyingObjectManager[*batchv1.Job]{}, Fields: []string{"spec.template"},
		},
		ReflectChildStatusOnParentWithError: func(
			_ context.Context, _ *fixture.Resource, _ *batchv1.Job, err error,
		) error {
			return err
		},
	}
}

// A migration starts only when the pod of the one before is gone: two at once would destroy data.
func TestRecreatingObjectManager_WaitsForPods(t *testing.T) {
	const hold = "integration.trueup.dev/runs"
	e := newEnv(t)
	e.start(root(migration()))
	parent := newResource("migration", map[string]string{"image": "one"})
	e.Add(parent)
	pods := func() (running []corev1.Pod) {
		list := &corev1.PodList{}
		e.Must(e.List(e.Context(), list, client.InNamespace(e.Namespace), client.MatchingLabels{"app": "migration"}))
		return list.Items
	}
	e.Eventually(func() error { return different("number of pods", 1, len(pods())) })
	old := pods()[0]
	change(e, &old, func(pod *corev1.Pod) { controllerutil.AddFinalizer(pod, hold) }) // it takes long to stop
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: "migration"}}
	e.Must(e.Get(e.Context(), client.ObjectKeyFromObject(job), job))
	before := job.UID

	change(e, parent, func(p *fixture.Resource) { p.Spec.Fields["image"] = "two" })
	until(e, job, func(job *batchv1.Job) error {
		if job.UID == before && job.DeletionTimestamp == nil {
			return errors.New("the Job was not deleted")
		}
		return nil
	})
	// The garbage collector stops the old pod. Until it is gone, there is no other Job.
	until(e, &old, func(pod *corev1.Pod) error {
		if pod.DeletionTimestamp == nil {
			return errors.New("the pod was not deleted")
		}
		return nil
	})
	e.touch(parent)
	e.Must(e.Get(e.Context(), client.ObjectKeyFromObject(job), job))
	equal(t, "UID of the Job", before, job.UID)
	equal(t, "number of pods", 1, len(pods()))

	change(e, &old, func(pod *corev1.Pod) { controllerutil.RemoveFinalizer(pod, hold) })
	e.Eventually(func() error {
		images := []string{}
		for _, pod := range pods() {
			images = append(images, pod.Spec.Containers[0].Image)
		}
		return different("images of the pods", "[two]", fmt.Sprint(images))
	})
}
