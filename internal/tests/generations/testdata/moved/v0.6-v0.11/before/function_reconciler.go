// SPDX-License-Identifier: Apache-2.0

// Package functions has the controller of Functions.
package functions

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"example.com/functions/api/v1"
	"github.com/vmware-labs/reconciler-runtime/reconcilers"
	"github.com/vmware-labs/reconciler-runtime/tracker"
)

func FunctionReconciler(c reconcilers.Config) *reconcilers.ResourceReconciler {
	return &reconcilers.ResourceReconciler{
		Name: "Function",
		Type: &v1.Function{},
		Reconciler: &reconcilers.WithFinalizer{
			Finalizer: "functions.example.com/records",
			Reconciler: reconcilers.Sequence{
				Theme(),
				Service(),
				Cast(),
				&reconcilers.CastResource{Type: &v1.Images{}, Reconciler: SeenImages()},
			},
		},
		Config: c,
	}
}

func Theme() reconcilers.SubReconciler {
	return &reconcilers.SyncReconciler{
		Name: "Theme",
		Setup: func(ctx context.Context, mgr ctrl.Manager, bldr *builder.Builder) error {
			bldr.Watches(&source.Kind{Type: &corev1.ConfigMap{}}, reconcilers.EnqueueTracked(ctx, &corev1.ConfigMap{}))
			return nil
		},
		Sync: func(ctx context.Context, resource *v1.Function) (ctrl.Result, error) {
			c := reconcilers.RetrieveConfigOrDie(ctx)
			name := types.NamespacedName{Namespace: resource.Namespace, Name: "theme"}
			c.Tracker.Track(ctx, tracker.NewKey(corev1.SchemeGroupVersion.WithKind("ConfigMap"), name),
				types.NamespacedName{Namespace: resource.Namespace, Name: resource.Name})
			theme := &corev1.ConfigMap{}
			if err := c.Get(ctx, name, theme); err != nil {
				return ctrl.Result{}, client.IgnoreNotFound(err)
			}
			logr.FromContextOrDiscard(ctx).Info("found the theme")
			resource.Status.Theme = theme.Data["color"]
			return ctrl.Result{RequeueAfter: time.Hour}, nil
		},
		Finalize: func(ctx context.Context, resource *v1.Function) (ctrl.Result, error) {
			c, err := reconcilers.RetrieveConfig(ctx)
			c.Log.Info("cleaned up")
			return ctrl.Result{}, err
		},
	}
}

func Service() reconcilers.SubReconciler {
	return &reconcilers.ChildReconciler{
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
		SemanticEquals: func(a1, a2 *corev1.Service) bool {
			return equality.Semantic.DeepEqual(a1.Spec.Ports, a2.Spec.Ports)
		},
		MergeBeforeUpdate: func(current, desired *corev1.Service) { current.Spec.Ports = desired.Spec.Ports },
		ReflectChildStatusOnParent: func(parent *v1.Function, child *corev1.Service, err error) {
			if err != nil {
				parent.Status.MarkServiceFailed(err.Error())
				return
			}
			parent.Status.MarkServiceReady()
		},
		Sanitize: func(child *corev1.Service) corev1.ServiceSpec { return child.Spec },
	}
}

// Cast sees a Function as what all kinds with images have.
func Cast() reconcilers.SubReconciler {
	return &reconcilers.CastResource{
		Type: &v1.Images{},
		Reconciler: &reconcilers.SyncReconciler{
			Sync: func(ctx context.Context, resource *v1.Images) error { return nil },
		},
	}
}

// Seen is what SeenImages has seen.
var Seen []string

// SeenImages is shared by all kinds.
func SeenImages() reconcilers.SubReconciler {
	return &reconcilers.SyncReconciler{
		Sync: func(ctx context.Context, resource client.Object) error {
			Seen = append(Seen, resource.GetName())
			return nil
		},
	}
}
