// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"trueup.dev/converge"
)

// region converge-wrong
// FormatReconciler creates a Job that formats the volume of each claim, once.
type FormatReconciler struct {
	client.Client
}

func (r *FormatReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	claim := &corev1.PersistentVolumeClaim{}
	if err := r.Get(ctx, req.NamespacedName, claim); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	jobs := &batchv1.JobList{}
	if err := r.List(ctx, jobs, client.InNamespace(claim.Namespace), client.MatchingLabels{
		"claim": claim.Name,
	}); err != nil {
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
		Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		},
	},
}

// FixedReconciler is FormatReconciler with a name of the Job that is derived from the claim.
type FixedReconciler struct {
	client.Client

	Reader client.Reader
}

func (r *FixedReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	claim := &corev1.PersistentVolumeClaim{}
	if err := r.Get(ctx, req.NamespacedName, claim); err != nil || claim.DeletionTimestamp != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	// region converge-right
	job := formatJob(claim)
	job.Name = "format-" + claim.Name
	if err := controllerutil.SetControllerReference(claim, job, r.Scheme()); err != nil {
		return ctrl.Result{}, err
	}
	err := r.Create(ctx, job)
	if !apierrs.IsAlreadyExists(err) {
		return ctrl.Result{}, err
	}
	// The cache may not have it yet. Reader is mgr.GetAPIReader().
	if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(job), job); err != nil {
		return ctrl.Result{}, err
	}
	if !metav1.IsControlledBy(job, claim) {
		return ctrl.Result{}, fmt.Errorf("job %s is not one of claim %s", job.Name, claim.Name)
	}
	return ctrl.Result{}, nil
	// endregion
}

// SetupWithManager registers the controller.
func (r *FixedReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&corev1.PersistentVolumeClaim{}).Owns(&batchv1.Job{}).Complete(r)
}

// formatting is the scenario of the guide.
func formatting() converge.Scenario {
	// region converge-run
	scenario := converge.Scenario{
		Scheme: scheme,
		For:    &corev1.PersistentVolumeClaim{},
		Setup: func(mgr manager.Manager) error {
			return (&FormatReconciler{mgr.GetClient()}).SetupWithManager(mgr)
		},
		World: []converge.Actor{converge.Jobs(converge.BecomeReady)},
		Steps: converge.Lifecycle(dataClaim),
	}
	// endregion
	return scenario
}

// TestConvergeGuide compares the guide with the output.
func TestConvergeGuide(t *testing.T) {
	// The default numbers, also with the race detector.
	options := converge.Options{Seed: 1, Recoveries: 1000, Pairs: 1000}
	report, err := converge.Check(t, formatting(), options)
	if err != nil || report.Failure == nil {
		t.Fatal("the bug is not found", err)
	}
	failure := report.Failure

	fixed := formatting()
	fixed.Setup = func(mgr manager.Manager) error {
		return (&FixedReconciler{mgr.GetClient(), mgr.GetAPIReader()}).SetupWithManager(mgr)
	}
	if report, err = converge.Check(t, fixed, options); err != nil || report.Failure != nil {
		t.Fatalf("the correct code fails: %v\n%s", err, report.Failure)
	}

	printed := map[string]string{
		"converge-failure":     failure.String(),
		"converge-replay":      "go test -run '^TestFormatConverges$' -converge.replay='" + failure.Replay + "'\n",
		"converge-certificate": report.Certificate.String() + "\n",
	}
	showPrinted(t, "converge.md", printed)
}

// showPrinted checks that a guide shows all of the output.
func showPrinted(t *testing.T, guide string, printed map[string]string) {
	t.Helper()
	before := readFile(t, guide)
	after, names := withBlocks(t, guide, before, "text", func(name string) (string, bool) {
		text, ok := printed[name]
		return text, ok
	})
	if len(names) != len(printed) {
		t.Errorf("the guide shows %q, want all of the output", names)
	}
	switch {
	case before == after:
	case *update:
		if err := os.WriteFile(guide, []byte(after), 0o600); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("the guide differs from the output; `go test ./docs -update` copies it (-guide +printed):\n%s",
			cmp.Diff(strings.Split(before, "\n"), strings.Split(after, "\n")))
	}
}
