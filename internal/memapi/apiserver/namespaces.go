// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// furnishDefault creates what an API server itself creates: the service of the API.
func (s *Server) furnishDefault() error {
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceDefault, Name: "kubernetes",
			Labels: map[string]string{"component": "apiserver", "provider": "kubernetes"},
		},
		Spec: corev1.ServiceSpec{
			ClusterIP: "10.96.0.1",
			Ports: []corev1.ServicePort{{
				Name: "https", Port: 443, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(6443),
			}},
		},
	}
	return s.api.Client("").Create(s.ctx, service) // no manager: schemas are not needed yet
}

// furnish creates what controllers create in each namespace.
func (s *Server) furnish(ctx context.Context, c client.Client, namespace *corev1.Namespace) error {
	if namespace.DeletionTimestamp != nil {
		return nil
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "default"}}
	authority := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "kube-root-ca.crt"},
		Data:       map[string]string{"ca.crt": string(s.authority)},
	}
	return errors.Join(
		client.IgnoreAlreadyExists(c.Create(ctx, account)), client.IgnoreAlreadyExists(c.Create(ctx, authority)),
	)
}
