// SPDX-License-Identifier: Apache-2.0

// Every namespace that has a label `team` gets a quota.
package main

import (
	"context"
	"log"
	"log/slog"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/reconcilers"
)

func quota() reconcilers.SubReconciler[*corev1.Namespace] {
	return &reconcilers.ChildReconciler[*corev1.Namespace, *corev1.ResourceQuota, *corev1.ResourceQuotaList]{
		ListOptions: func(_ context.Context, ns *corev1.Namespace) []client.ListOption {
			return []client.ListOption{client.InNamespace(ns.Name)}
		},
		DesiredChild: func(_ context.Context, ns *corev1.Namespace) (*corev1.ResourceQuota, error) {
			if ns.Labels["team"] == "" {
				return nil, nil // no quota; an existing one is deleted
			}
			return &corev1.ResourceQuota{
				ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: "team"},
				Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"pods": resource.MustParse("20")}},
			}, nil
		},
		MergeBeforeUpdate: func(current, desired *corev1.ResourceQuota) { current.Spec = desired.Spec },
		ReflectChildStatusOnParentWithError: func(
			_ context.Context, _ *corev1.Namespace, _ *corev1.ResourceQuota, err error,
		) error {
			return err // the status of a namespace has no field for it: the error is logged and retried
		},
	}
}

func setup(ctx context.Context, mgr ctrl.Manager) error {
	return (&reconcilers.ResourceReconciler[*corev1.Namespace]{
		Reconciler:       quota(),
		SkipStatusUpdate: true,
		Config:           reconcilers.NewConfig(mgr, &corev1.Namespace{}, 10*time.Hour),
	}).SetupWithManager(ctx, mgr)
}

func main() {
	ctrl.SetLogger(logr.FromSlogHandler(slog.Default().Handler()))
	ctx := ctrl.SetupSignalHandler()
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{})
	if err == nil {
		err = setup(ctx, mgr)
	}
	if err == nil {
		err = mgr.Start(ctx)
	}
	if err != nil {
		log.Fatal(err)
	}
}
