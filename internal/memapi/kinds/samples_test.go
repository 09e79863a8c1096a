// SPDX-License-Identifier: Apache-2.0

package kinds_test

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func sampleMeta() metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: "web", Namespace: "default", Labels: map[string]string{
			"app": "web",
		}, Annotations: map[string]string{"note": "x"},
		OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "example.com/v1", Kind: "Website", Name: "web", UID: "1", Controller: new(true)},
		},
	}
}

func sampleConfigMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: sampleMeta(), Data: map[string]string{"index.html": "hello", "style.css": ""}}
}

func sampleDeployment() *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: sampleMeta(),
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(2)),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{{
						Name: "web", Image: "nginx:1.29",
						Ports: []corev1.ContainerPort{{ContainerPort: 80}},
						Env: []corev1.EnvVar{
							{Name: "A", Value: "b"},
							{Name: "IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}},
						},
						Resources: corev1.ResourceRequirements{
							Limits: corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")},
						},
						VolumeMounts: []corev1.VolumeMount{{Name: "content", MountPath: "/content"}},
					}},
					Volumes: []corev1.Volume{{Name: "content", VolumeSource: corev1.VolumeSource{
						ConfigMap: &corev1.ConfigMapVolumeSource{
							LocalObjectReference: corev1.LocalObjectReference{Name: "web"},
						},
					}}},
				},
			},
		},
	}
}
