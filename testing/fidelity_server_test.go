// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

func newDeployment(p *place, name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{ObjectMeta: p.meta(name), Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "example.com/app"}}},
		},
	}}
}

func newUntyped(p *place, name string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(untypedKind)
	obj.SetNamespace(p.namespace)
	obj.SetName(name)
	return obj
}

// serverTraits test what a server does besides storing objects.
func serverTraits() []trait {
	return []trait{
		{
			feature: "Subresources other than the status have an effect",
			fake:    "no", realistic: "yes", onCluster: "yes",
			observe: func(p *place) string {
				deployment := newDeployment(p, "one")
				p.create(deployment)
				scale := &autoscalingv1.Scale{ObjectMeta: p.meta("one"), Spec: autoscalingv1.ScaleSpec{Replicas: 3}}
				p.must(p.SubResource("scale").Update(p.ctx, deployment, client.WithSubResourceBody(scale)))
				p.must(p.Get(p.ctx, client.ObjectKeyFromObject(deployment), deployment))
				return yes(deployment.Spec.Replicas != nil && *deployment.Spec.Replicas == 3)
			},
		},
		{
			feature: "Unset fields get their default",
			fake:    "no", realistic: "no", onCluster: "yes",
			observe: func(p *place) string {
				deployment := newDeployment(p, "one")
				p.create(deployment)
				return yes(deployment.Spec.Replicas != nil)
			},
		},
		{
			feature: "Objects are validated",
			fake:    "no", realistic: "no", onCluster: "yes",
			observe: func(p *place) string {
				return fails(p.Create(p.ctx, newConfigMap(p, "No Name")), apierrs.IsInvalid)
			},
		},
		{
			feature: "Unknown fields are dropped",
			fake:    "no", realistic: "no", onCluster: "yes",
			observe: func(p *place) string {
				obj := newUntyped(p, "one")
				obj.Object["other"] = "field"
				p.create(obj)
				return yes(obj.Object["other"] == nil)
			},
		},
		{
			feature: "Kinds must be installed",
			fake:    "no", realistic: "no", onCluster: "yes",
			observe: func(p *place) string {
				obj := newUntyped(p, "one")
				obj.SetKind("Unheard")
				return fails(p.Create(p.ctx, obj), meta.IsNoMatchError)
			},
		},
		{
			feature: "Namespaces must exist",
			fake:    "no", realistic: "no", onCluster: "yes",
			observe: func(p *place) string {
				configMap := newConfigMap(p, "one")
				configMap.Namespace = "nowhere"
				return fails(p.Create(p.ctx, configMap), apierrs.IsNotFound)
			},
		},
		{
			feature: "Objects are deleted after their owner",
			fake:    "no", realistic: "no", onCluster: "yes, if Realistic",
			observe: func(p *place) string {
				owner, owned := newConfigMap(p, "owner"), newConfigMap(p, "owned")
				p.create(owner)
				if owner.UID == "" {
					owner.UID = "none" // an owner reference needs one
				}
				p.must(controllerutil.SetControllerReference(owner, owned, p.Scheme()))
				p.create(owned)
				p.must(p.Delete(p.ctx, owner))
				gone := func(ctx context.Context) (bool, error) {
					return apierrs.IsNotFound(p.Get(ctx, client.ObjectKeyFromObject(owned), owned)), nil
				}
				if p.eventually {
					return yes(wait.PollUntilContextCancel(p.ctx, 20*time.Millisecond, true, gone) == nil)
				}
				is, _ := gone(p.ctx)
				return yes(is)
			},
		},
		{
			feature: "Lists can be selected by name without an index",
			fake:    "no", realistic: "no", onCluster: "yes",
			observe: func(p *place) string {
				p.create(newConfigMap(p, "one"))
				list := &corev1.ConfigMapList{}
				err := p.List(p.ctx, list, client.InNamespace(p.namespace), client.MatchingFields{"metadata.name": "one"})
				return yes(err == nil && len(list.Items) == 1)
			},
		},
		{
			feature: "Lists are limited, and continued",
			fake:    "no", realistic: "no", onCluster: "no",
			observe: func(p *place) string {
				p.create(newConfigMap(p, "one"))
				p.create(newConfigMap(p, "two"))
				list := &corev1.ConfigMapList{}
				p.must(p.List(p.ctx, list, client.InNamespace(p.namespace), client.Limit(1)))
				return yes(len(list.Items) == 1 && list.Continue != "")
			},
		},
		{
			feature: "DeleteAllOf respects field selectors",
			fake:    "no", realistic: "no", onCluster: "yes",
			observe: func(p *place) string {
				p.create(newConfigMap(p, "one"))
				p.create(newConfigMap(p, "two"))
				p.must(p.DeleteAllOf(p.ctx, &corev1.ConfigMap{}, client.InNamespace(p.namespace),
					client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", "one")}))
				return yes(p.Get(p.ctx, client.ObjectKey{Namespace: p.namespace, Name: "two"}, &corev1.ConfigMap{}) == nil)
			},
		},
	}
}
