// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"trueup.dev/converge"
)

var appConfig = &corev1.ConfigMap{
	ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "app"}, Data: map[string]string{"image": "app:1"},
}

// AppReconciler runs the image of each ConfigMap in a Deployment.
type AppReconciler struct {
	client.Client

	// set writes what the reconciler wants into a Deployment.
	set func(deployment, desired *appsv1.Deployment)
}

func (r *AppReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	config := &corev1.ConfigMap{}
	if err := r.Get(ctx, req.NamespacedName, config); err != nil || config.DeletionTimestamp != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	desired := r.deploymentFor(config)
	deployment := &appsv1.Deployment{}
	switch err := r.Get(ctx, req.NamespacedName, deployment); {
	case apierrs.IsNotFound(err):
		return ctrl.Result{}, r.Create(ctx, desired)
	case err != nil:
		return ctrl.Result{}, err
	}
	before := deployment.DeepCopy()
	r.set(deployment, desired)
	if before.Generation == 0 || sameSpec(before, deployment) {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, r.Update(ctx, deployment)
}

func sameSpec(a, b *appsv1.Deployment) bool {
	return *a.Spec.Replicas == *b.Spec.Replicas &&
		a.Spec.Template.Spec.Containers[0].Image == b.Spec.Template.Spec.Containers[0].Image
}

func (r *AppReconciler) deploymentFor(config *corev1.ConfigMap) *appsv1.Deployment {
	labels := map[string]string{"app": config.Name}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: config.Namespace, Name: config.Name},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: config.Data["image"]}}},
			},
		},
	}
	_ = controllerutil.SetControllerReference(config, deployment, r.Scheme())
	return deployment
}

func (r *AppReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Owns(&appsv1.Deployment{}).Complete(r)
}

// ScaleReconciler is a program of another team, which lets each Deployment have at least three replicas.
type ScaleReconciler struct {
	client.Client
}

func (r *ScaleReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	deployment := &appsv1.Deployment{}
	if err := r.Get(ctx, req.NamespacedName, deployment); err != nil || *deployment.Spec.Replicas >= 3 {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	before := deployment.DeepCopy()
	deployment.Spec.Replicas = new(int32(3))
	return ctrl.Result{}, client.IgnoreNotFound(r.Patch(ctx, deployment, client.MergeFrom(before)))
}

func (r *ScaleReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&appsv1.Deployment{}).Complete(r)
}

func setAll(deployment, desired *appsv1.Deployment) {
	// region programs-wrong
	// Wrong: the scaler decides about spec.replicas, too.
	deployment.Spec.Replicas = desired.Spec.Replicas
	deployment.Spec.Template.Spec.Containers[0].Image = desired.Spec.Template.Spec.Containers[0].Image
	// endregion
}

func setImage(deployment, desired *appsv1.Deployment) {
	// region programs-right
	// Right: after the creation, the replicas belong to the scaler.
	deployment.Spec.Template.Spec.Containers[0].Image = desired.Spec.Template.Spec.Containers[0].Image
	// endregion
}

// programs is the scenario of the guide.
func programs(set func(deployment, desired *appsv1.Deployment)) converge.Scenario {
	// region programs-run
	scenario := converge.Scenario{
		Scheme: scheme,
		For:    &corev1.ConfigMap{},
		Setup: func(mgr ctrl.Manager) error {
			return (&AppReconciler{mgr.GetClient(), set}).SetupWithManager(mgr)
		},
		Programs: []converge.Program{{
			Name: "scaler",
			Setup: func(mgr ctrl.Manager) error {
				return (&ScaleReconciler{mgr.GetClient()}).SetupWithManager(mgr)
			},
		}},
		Steps: converge.Lifecycle(appConfig),
	}
	// endregion
	return scenario
}

// replicas is the scenario of the guide with a leader and a standby.
func replicas(set func(deployment, desired *appsv1.Deployment)) converge.Scenario {
	// region programs-replicas
	elected := func(mgr ctrl.Manager) error {
		if err := converge.ApplyOptions(mgr, ctrl.Options{
			LeaderElection: true, LeaderElectionID: "app", LeaderElectionNamespace: "default",
			LeaseDuration: new(2 * time.Hour), RenewDeadline: new(80 * time.Minute), RetryPeriod: new(50 * time.Minute),
		}); err != nil {
			return err
		}
		return (&AppReconciler{mgr.GetClient(), set}).SetupWithManager(mgr)
	}
	scenario := converge.Scenario{
		Scheme:   scheme,
		For:      &corev1.ConfigMap{},
		Setup:    elected,
		Programs: []converge.Program{{Name: "standby", Setup: elected}},
		Steps:    converge.Lifecycle(appConfig),
		With:     []converge.Fault{converge.FaultPause},
	}
	// endregion
	return scenario
}

func TestProgramsGuide_replicas(t *testing.T) {
	options := converge.Options{Seed: 1, SingleRequests: 2000}
	if report, err := converge.Check(t, replicas(setImage), options); err != nil || report.Failure != nil {
		t.Fatalf("the replicas fail: %v\n%s", err, report.Failure)
	}
}

// TestProgramsGuide compares the guide with the output.
func TestProgramsGuide(t *testing.T) {
	options := converge.Options{Seed: 1, Recoveries: 100, Pairs: 100}
	report, err := converge.Check(t, programs(setAll), options)
	if err != nil || report.Failure == nil {
		t.Fatal("the fight is not found", err)
	}
	failure := report.Failure
	if failure.Violation.Cause != converge.CauseFight {
		t.Errorf("the cause is %s", failure.Violation.Cause)
	}
	if report, err = converge.Check(t, programs(setImage), options); err != nil || report.Failure != nil {
		t.Fatalf("the correct code fails: %v\n%s", err, report.Failure)
	}
	showPrinted(t, "converge/programs.md", map[string]string{
		"programs-failure": failure.String(), "programs-certificate": report.Certificate.String() + "\n",
	})
}
