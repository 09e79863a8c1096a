// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"trueup.dev/converge"
)

// region converge-wrong
// FormatReconciler has a Job format the volume of each claim, once.
type FormatReconciler struct {
	client.Client
}

func (r *FormatReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	claim := &corev1.PersistentVolumeClaim{}
	if err := r.Get(ctx, req.NamespacedName, claim); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	jobs := &batchv1.JobList{}
	if err := r.List(ctx, jobs, client.InNamespace(claim.Namespace), client.MatchingLabels{"claim": claim.Name}); err != nil {
		return ctrl.Result{}, err
	}
	if len(jobs.Items) > 0 || claim.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	job := formatJob(claim)
	job.GenerateName = "format-" + claim.Name + "-"
	if err := controllerutil.SetControllerReference(claim, job, r.Scheme()); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.Create(ctx, job)
}

// SetupWithManager registers the controller.
func (r *FormatReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&corev1.PersistentVolumeClaim{}).Owns(&batchv1.Job{}).Complete(r)
}

// endregion

func formatJob(claim *corev1.PersistentVolumeClaim) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: claim.Namespace, Labels: map[string]string{"claim": claim.Name}},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "format", Image: "example.com/mkfs"}},
		}}},
	}
}

var dataClaim = &corev1.PersistentVolumeClaim{
	ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data"},
	Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	},
}

func TestX(t *testing.T) {
	_ = regexp.MustCompile
	_ = strings.Cut
	_ = cmp.Diff
	s := converge.Scenario{
		Scheme: scheme,
		For:    &corev1.PersistentVolumeClaim{},
		Setup:  func(mgr manager.Manager) error { return (&FormatReconciler{mgr.GetClient()}).SetupWithManager(mgr) },
		World:  []converge.Actor{converge.Jobs(converge.BecomeReady)},
		Steps:  converge.Lifecycle(dataClaim),
	}
	r, err := converge.Check(t, s, converge.DefaultOptions())
	t.Log(err)
	t.Log(r.Failure)
	t.Log(r.Failure.Replay)
	t.Log(r.Certificate, r.Certificate.Elapsed)
}
