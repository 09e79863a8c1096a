// SPDX-License-Identifier: Apache-2.0

package kinds_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Node ports of a service that needs none any more go, unless there are new ones among them, which are refused then.
func TestUnusedNodePorts(t *testing.T) {
	service := func(of corev1.ServiceType, ports ...int32) *corev1.Service {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "b"}, Spec: corev1.ServiceSpec{Type: of, ClusterIP: "10.0.0.1"}}
		for i, port := range ports {
			s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Port: int32(80 + i), NodePort: port})
		}
		return s
	}
	kind := kindOf(t, newRegistry(t), &corev1.Service{})
	for _, c := range []struct {
		name       string
		ports      []int32 // of the update
		want       []int32
		healthPort int32 // of the old service
	}{
		{"all", []int32{30001, 30002}, []int32{0, 0}, 0},
		{"some of them", []int32{30002}, []int32{0}, 0},
		{"none", []int32{0}, []int32{0}, 0},
		{"a new one", []int32{30001, 30003}, []int32{30001, 30003}, 0},
		{"besides that for health checks", []int32{30001}, []int32{0}, 30009},
	} {
		t.Run(c.name, func(t *testing.T) {
			old, s := service(corev1.ServiceTypeLoadBalancer, 30001, 30002), service(corev1.ServiceTypeClusterIP, c.ports...)
			old.Spec.HealthCheckNodePort = c.healthPort
			kind.PrepareForUpdate(s, old)
			var got []int32
			for _, port := range s.Spec.Ports {
				got = append(got, port.NodePort)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("node ports (-want +got):\n%s", diff)
			}
		})
	}
}

// An address of a load balancer has a mode, which is a default only where the type of the service is sent along.
func TestModeOfIngress(t *testing.T) {
	kind := kindOf(t, newRegistry(t), &corev1.Service{})
	for _, mode := range []*corev1.LoadBalancerIPMode{nil, new(corev1.LoadBalancerIPModeVIP)} {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "b", ResourceVersion: "1"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}}
		old := s.DeepCopy()
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.7", IPMode: mode}}
		want := ""
		if mode == nil {
			want = "status.loadBalancer.ingress[0].ipMode: Required value: must be specified when `ip` is set"
		}
		got := ""
		if errs := kind.ValidateStatusUpdate(s, old); len(errs) > 0 {
			got = errs.ToAggregate().Error()
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("errors (-want +got):\n%s", diff)
		}
	}
}
