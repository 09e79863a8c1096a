// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"trueup.dev/converge"
)

// PortReconciler keeps a Service for a ConfigMap.
type PortReconciler struct {
	client.Client

	sync func(ctx context.Context, r *PortReconciler, config *corev1.ConfigMap) error
}

func (r *PortReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	config := &corev1.ConfigMap{}
	if err := r.Get(ctx, req.NamespacedName, config); err != nil || config.DeletionTimestamp != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	return ctrl.Result{}, r.sync(ctx, r, config)
}

func (r *PortReconciler) keepService(ctx context.Context, config *corev1.ConfigMap, name string) error {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: config.Namespace, Name: name}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, service, func() error {
		service.Spec.Ports = []corev1.ServicePort{{Protocol: corev1.ProtocolTCP, Port: 80, TargetPort: intstr.FromInt32(80)}}
		return controllerutil.SetControllerReference(config, service, r.Scheme())
	})
	return err
}

func (r *PortReconciler) deleteService(ctx context.Context, config *corev1.ConfigMap, name string) error {
	service := &corev1.Service{}
	err := r.Get(ctx, client.ObjectKey{Namespace: config.Namespace, Name: name}, service)
	if err != nil || !metav1.IsControlledBy(service, config) || service.DeletionTimestamp != nil {
		return client.IgnoreNotFound(err)
	}
	return client.IgnoreNotFound(r.Delete(ctx, service, client.Preconditions{UID: new(service.UID)}))
}

func firstPorts(ctx context.Context, r *PortReconciler, config *corev1.ConfigMap) error {
	return r.keepService(ctx, config, config.Name)
}

func renamedPorts(ctx context.Context, r *PortReconciler, config *corev1.ConfigMap) error {
	// region upgrades-wrong
	// Wrong: version 1 has created a Service with the name of the ConfigMap, which stays.
	return r.keepService(ctx, config, config.Name+"-http")
	// endregion
}

func movedPorts(ctx context.Context, r *PortReconciler, config *corev1.ConfigMap) error {
	// region upgrades-right
	// Right: each reconcile deletes the Service of version 1. A late write of version 1 may create it again.
	return errors.Join(
		r.keepService(ctx, config, config.Name+"-http"),
		r.deleteService(ctx, config, config.Name),
	)
	// endregion
}

func ports(sync func(context.Context, *PortReconciler, *corev1.ConfigMap) error) func(manager.Manager) error {
	return func(mgr manager.Manager) error {
		return ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Owns(&corev1.Service{}).Complete(
			&PortReconciler{mgr.GetClient(), sync},
		)
	}
}

func portVersions(
	sync func(context.Context, *PortReconciler, *corev1.ConfigMap) error,
) (old, current converge.Scenario) {
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	setupVersion1, setupVersion2 := ports(firstPorts), ports(sync)
	// region upgrades-run
	current = converge.Scenario{
		Scheme: scheme,
		For:    &corev1.ConfigMap{},
		Setup:  setupVersion2,
		Steps:  converge.Lifecycle(config),
	}
	old = current
	old.Setup = setupVersion1
	// endregion
	// region upgrades-no-rollback
	current.NoRollback = "version 1 does not delete the Service of version 2"
	// endregion
	return old, current
}

func checkPorts(
	t *testing.T, sync func(context.Context, *PortReconciler, *corev1.ConfigMap) error,
) *converge.UpgradeReport {
	t.Helper()
	old, current := portVersions(sync)
	report, err := converge.CheckUpgrade(t, old, current, converge.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestUpgradesGuide(t *testing.T) {
	failure := checkPorts(t, renamedPorts).Failure
	if failure == nil {
		t.Fatal("found nothing")
	}
	report := checkPorts(t, movedPorts)
	if report.Failure != nil {
		t.Fatal(report.Failure)
	}
	showPrinted(t, "converge/upgrades.md", map[string]string{
		"upgrades-failure": failure.String(), "upgrades-certificate": report.Certificate.String() + "\n",
	})
}
