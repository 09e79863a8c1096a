// SPDX-License-Identifier: Apache-2.0

package kinds_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Node ports of a service that no longer needs them are released. If the update changes them, it is refused.
func TestUnusedNodePorts(t *testing.T) {
	service := func(of corev1.ServiceType, ports ...int32) *corev1.Service {
		s := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "b"}, Spec: corev1.ServiceSpec{Type: of, ClusterIP: "10.0.0.1"},
		}
		for i, port := range ports {
			s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Port: int32(80 + i), NodePort: port})
		}
		return s
	}
	kind := kindOf(t, newRegistry(t), &corev1.Service{})
	for _, c := range []struct {
		name       string
		ports      []int32 // in the update
		want       []int32
		healthPort int32 // in the old service
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

// An address of a load balancer has a default mode only if the update contains the type of the service.
func TestModeOfIngress(t *testing.T) {
	kind := kindOf(t, newRegistry(t), &corev1.Service{})
	for _, mode := range []*corev1.LoadBalancerIPMode{nil, new(corev1.LoadBalancerIPModeVIP)} {
		s := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "b", ResourceVersion: "1"},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer},
		}
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

// Without a policy, the number of IP families of a service is kept.
func TestFamilies(t *testing.T) {
	kind := kindOf(t, newRegistry(t), &corev1.Service{})
	const v4, v6 = corev1.IPv4Protocol, corev1.IPv6Protocol
	single, prefer := corev1.IPFamilyPolicySingleStack, corev1.IPFamilyPolicyPreferDualStack
	require := corev1.IPFamilyPolicyRequireDualStack
	both := &corev1.ServiceSpec{ClusterIP: "None", IPFamilies: []corev1.IPFamily{v4, v6}, IPFamilyPolicy: &require}
	selector := map[string]string{"app": "x"}
	for name, c := range map[string]struct {
		old, spec *corev1.ServiceSpec
		want      []corev1.IPFamily
		policy    corev1.IPFamilyPolicy
	}{
		"a new service": {nil, &corev1.ServiceSpec{}, []corev1.IPFamily{v4}, single},
		"headless": {
			nil, &corev1.ServiceSpec{ClusterIP: "None", Selector: selector}, []corev1.IPFamily{v4}, single,
		},
		"headless, selects nothing": {
			nil, &corev1.ServiceSpec{ClusterIP: "None"}, []corev1.IPFamily{v4, v6}, require,
		},
		"wants one": {
			nil, &corev1.ServiceSpec{ClusterIP: "None", IPFamilyPolicy: &single}, []corev1.IPFamily{v4}, single,
		},
		"wants the other one first": {
			nil, &corev1.ServiceSpec{ClusterIP: "None", IPFamilies: []corev1.IPFamily{v6}}, []corev1.IPFamily{v6, v4}, require,
		},
		"begins to select": {
			both, &corev1.ServiceSpec{ClusterIP: "None", Selector: selector}, []corev1.IPFamily{v4}, require,
		},
		"goes on": {
			both, &corev1.ServiceSpec{ClusterIP: "None"}, []corev1.IPFamily{v4, v6}, require,
		},
		"wants no more than one from now on": {
			both, &corev1.ServiceSpec{ClusterIP: "None", IPFamilies: both.IPFamilies, IPFamilyPolicy: &single},
			[]corev1.IPFamily{v4},
			single,
		},
		"would rather have both": {
			both, &corev1.ServiceSpec{ClusterIP: "None", IPFamilyPolicy: &prefer}, []corev1.IPFamily{v4, v6}, prefer,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &corev1.Service{Spec: *c.spec.DeepCopy()}
			s.Spec.Type = corev1.ServiceTypeClusterIP
			if c.old == nil {
				kind.PrepareForCreate(s)
			} else {
				old := &corev1.Service{Spec: *c.old.DeepCopy()}
				old.Spec.Type = s.Spec.Type
				kind.PrepareForUpdate(s, old)
			}
			if diff := cmp.Diff(c.want, s.Spec.IPFamilies); diff != "" {
				t.Errorf("families (-want +got):\n%s", diff)
			}
			if *s.Spec.IPFamilyPolicy != c.policy {
				t.Errorf("policy %s, want %s", *s.Spec.IPFamilyPolicy, c.policy)
			}
		})
	}
}

// A dry run returns unused ports for new ports.
func TestDryRunOfService(t *testing.T) {
	kind := kindOf(t, newRegistry(t), &corev1.Service{})
	ports := func(numbers ...int32) (ports []corev1.ServicePort) {
		for i, number := range numbers {
			ports = append(ports, corev1.ServicePort{Name: string(rune('a' + i)), Port: int32(80 + i), NodePort: number})
		}
		return ports
	}
	for name, c := range map[string]struct{ old, sent, want []corev1.ServicePort }{
		"all are new":   {nil, ports(0, 0), ports(32769, 32770)},
		"one is kept":   {ports(30001), ports(0, 0), ports(30001, 32769)},
		"one is chosen": {nil, ports(0, 30005), ports(30006, 30005)},
	} {
		t.Run(name, func(t *testing.T) {
			service := func(ports []corev1.ServicePort) *corev1.Service {
				return &corev1.Service{
					Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, ClusterIP: "10.0.0.1", Ports: ports},
				}
			}
			s, sent := service(c.sent), service(c.sent)
			if c.old == nil {
				kind.PrepareForCreate(s)
				kind.ShowDryRun(s, sent, nil)
			} else {
				kind.PrepareForUpdate(s, service(c.old))
				kind.ShowDryRun(s, sent, service(c.old))
			}
			if diff := cmp.Diff(c.want, s.Spec.Ports); diff != "" {
				t.Errorf("ports (-want +got):\n%s", diff)
			}
		})
	}
}
