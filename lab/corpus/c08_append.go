// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
)

// features are widgets whose arguments grow.
func features() converge.Scenario {
	return converge.Scenario{
		For: &Widget{}, Owns: []client.Object{&appsv1.Deployment{}},
		Steps: converge.Lifecycle(widget("gateway", WidgetSpec{Replicas: 1, Image: "gateway:1", Tags: []string{"http2"}}),
			func(w *Widget) { w.Spec.Tags = []string{"http2", "quic"} }),
		World: []converge.Actor{converge.Deployments(converge.BecomeReady)},
	}
}

// feature has a deployment with an argument for each tag of a widget.
type feature struct{ client.Client }

// reconcile is common to both versions, except for the arguments.
func (r *feature) reconcile(
	ctx context.Context, req reconcile.Request, args func(w *Widget, current []string) []string,
) error {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return client.IgnoreNotFound(err)
	}
	d := &appsv1.Deployment{ObjectMeta: childMeta(w, w.Name)}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, d, func() error {
		if d.CreationTimestamp.IsZero() {
			labels := map[string]string{widgetLabel: w.Name}
			d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
			d.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec(w.Spec.Image)}
		} else if !metav1.IsControlledBy(d, w) {
			return fmt.Errorf("%s has another owner", d.Name)
		}
		d.Spec.Replicas = &w.Spec.Replicas
		container := &d.Spec.Template.Spec.Containers[0]
		container.Image = w.Spec.Image
		container.Args = args(w, container.Args)
		return controllerutil.SetControllerReference(w, d, r.Scheme())
	})
	if err != nil {
		return fmt.Errorf("the deployment: %w", err)
	}
	if slices.Equal(w.Status.Members, w.Spec.Tags) && w.Status.ObservedGeneration == w.Generation {
		return nil
	}
	w.Status.Members, w.Status.ObservedGeneration = w.Spec.Tags, w.Generation
	return r.Status().Update(ctx, w)
}

type appendedArgs struct{ feature }

func (r *appendedArgs) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return reconcile.Result{}, r.reconcile(ctx, req, func(w *Widget, args []string) []string {
		for _, tag := range w.Spec.Tags {
			if !slices.Contains(w.Status.Members, tag) {
				args = append(args, "--enable", tag)
			}
		}
		return args
	})
}

type computedArgs struct{ feature }

func (r *computedArgs) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return reconcile.Result{}, r.reconcile(ctx, req, func(w *Widget, _ []string) []string {
		var args []string
		for _, tag := range w.Spec.Tags {
			args = append(args, "--enable", tag)
		}
		return args
	})
}
