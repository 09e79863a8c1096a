// SPDX-License-Identifier: Apache-2.0

// Package functions has the controller of Functions.
package functions

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/functions/api/v1"
	"trueup.dev/reconcilers"
)

func FunctionReconciler(c reconcilers.Config) *reconcilers.ResourceReconciler[*v1.Function] {
	return &reconcilers.ResourceReconciler[*v1.Function]{
		Name: "Function",
		Type: &v1.Function{},
		Reconciler: &reconcilers.WithFinalizer[*v1.Function]{
			Finalizer: "functions.example.com/records",
			Reconciler: reconcilers.Sequence[*v1.Function]{
				Theme(),
				Service(),
				Cast(),
				&reconcilers.CastResource[*v1.Function, client.Object]{Reconciler: SeenImages()},
			},
		},
		Config: c,
	}
}

func Theme() reconcilers.SubReconciler[*v1.Function] {
	return &reconcilers.SyncReconciler[*v1.Function]{
		Name: "Theme",
		Setup: func(ctx context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder) error {
			bldr.Watches(&corev1.ConfigMap{}, reconcilers.EnqueueTracked(ctx))
			return nil
		},
		SyncWithResult: func(ctx context.Context, resource *v1.Function) (ctrl.Result, error) {
			c := reconcilers.RetrieveConfigOrDie(ctx)
			theme := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: resource.Namespace, Name: "theme"}}
			if err := c.Tracker.TrackObject(theme, resource); err != nil {
				return ctrl.Result{}, err
			}
			if err := c.Get(ctx, client.ObjectKeyFromObject(theme), theme); err != nil {
				return ctrl.Result{}, client.IgnoreNotFound(err)
			}
			logr.FromContextOrDiscard(ctx).Info("found the theme")
			resource.Status.Theme = theme.Data["color"]
			return ctrl.Result{RequeueAfter: time.Hour}, nil
		},
		FinalizeWithResult: func(ctx context.Context, resource *v1.Function) (ctrl.Result, error) {
			_, err := reconcilers.RetrieveConfig(ctx)
			logr.FromContextOrDiscard(ctx).Info("cleaned up")
			return ctrl.Result{}, err
		},
	}
}

func Service() reconcilers.SubReconciler[*v1.Function] {
	return &reconcilers.ChildReconciler[*v1.Function, *corev1.Service, *corev1.ServiceList]{
		Name:          "Service",
		ChildType:     &corev1.Service{},
		ChildListType: &corev1.ServiceList{},
		DesiredChild: func(ctx context.Context, resource *v1.Function) (*corev1.Service, error) {
			if resource.Spec.Paused != nil && *resource.Spec.Paused {
				return nil, nil
			}
			return &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Namespace: resource.Namespace, Name: resource.Name},
				Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
			}, nil
		},
		MergeBeforeUpdate: func(current, desired *corev1.Service) { current.Spec.Ports = desired.Spec.Ports },
		ReflectChildStatusOnParent: func(ctx context.Context, parent *v1.Function, child *corev1.Service, err error) {
			if err != nil {
				parent.Status.MarkServiceFailed(err.Error())
				return
			}
			parent.Status.MarkServiceReady()
		},
		Sanitize: func(child *corev1.Service) any { return child.Spec },
	}
}

// Cast sees a Function as what all kinds with images have.
func Cast() reconcilers.SubReconciler[*v1.Function] {
	return &reconcilers.CastResource[*v1.Function, *v1.Images]{
		Reconciler: &reconcilers.SyncReconciler[*v1.Images]{
			Sync: func(ctx context.Context, resource *v1.Images) error { return nil },
		},
	}
}

// Seen is what SeenImages has seen.
var Seen []string

// SeenImages is shared by all kinds.
func SeenImages() reconcilers.SubReconciler[client.Object] {
	return &reconcilers.SyncReconciler[client.Object]{
		Sync: func(ctx context.Context, resource client.Object) error {
			Seen = append(Seen, resource.GetName())
			return nil
		},
	}
}
