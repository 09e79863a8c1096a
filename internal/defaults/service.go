// SPDX-License-Identifier: Apache-2.0

package defaults

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Service sets the defaults of a Service, except allocated values.
// Upstream: pkg/apis/core/v1/defaults.go: SetDefaults_Service
func Service(s *corev1.Service) {
	spec := &s.Spec
	Set(&spec.SessionAffinity, corev1.ServiceAffinityNone)
	switch spec.SessionAffinity {
	case corev1.ServiceAffinityNone:
		spec.SessionAffinityConfig = nil
	case corev1.ServiceAffinityClientIP:
		if c := spec.SessionAffinityConfig; c == nil || c.ClientIP == nil || c.ClientIP.TimeoutSeconds == nil {
			spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{
				ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(corev1.DefaultClientIPServiceAffinitySeconds)},
			}
		}
	}
	Set(&spec.Type, corev1.ServiceTypeClusterIP)
	for i := range spec.Ports {
		port := &spec.Ports[i]
		Set(&port.Protocol, corev1.ProtocolTCP)
		if port.TargetPort == intstr.FromInt32(0) || port.TargetPort == intstr.FromString("") {
			port.TargetPort = intstr.FromInt32(port.Port)
		}
	}
	if IsExternal(s) {
		Set(&spec.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster)
	}
	if spec.Type != corev1.ServiceTypeExternalName {
		SetPointer(&spec.InternalTrafficPolicy, corev1.ServiceInternalTrafficPolicyCluster)
	}
	if spec.Type == corev1.ServiceTypeLoadBalancer {
		SetPointer(&spec.AllocateLoadBalancerNodePorts, true)
		for i := range s.Status.LoadBalancer.Ingress {
			if ingress := &s.Status.LoadBalancer.Ingress[i]; ingress.IP != "" {
				SetPointer(&ingress.IPMode, corev1.LoadBalancerIPModeVIP)
			}
		}
	}
}

// IsExternal reports whether a service is reachable from outside of the cluster.
// Upstream: pkg/api/service/util.go: ExternallyAccessible
func IsExternal(s *corev1.Service) bool {
	return NeedsNodePorts(s) || s.Spec.Type == corev1.ServiceTypeClusterIP && len(s.Spec.ExternalIPs) > 0
}

// NeedsNodePorts reports whether a service has ports on the nodes.
// Upstream: pkg/registry/core/service/strategy.go: needsNodePort
func NeedsNodePorts(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeNodePort || s.Spec.Type == corev1.ServiceTypeLoadBalancer
}

// NeedsHealthPort reports whether a service has a port for health checks on the nodes.
// Upstream: pkg/registry/core/service/strategy.go: needsHCNodePort
func NeedsHealthPort(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeLoadBalancer &&
		s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}

// KeepAllocated copies the allocated values of the stored service that the writer omitted.
// Upstream: pkg/registry/core/service/storage/storage.go: patchAllocatedValues, normalizeClusterIPs
func KeepAllocated(s, old *corev1.Service) {
	spec, before := &s.Spec, &old.Spec
	if before.Type != corev1.ServiceTypeExternalName && spec.Type != corev1.ServiceTypeExternalName {
		Set(&spec.ClusterIP, before.ClusterIP)
		if len(spec.ClusterIPs) == 0 {
			spec.ClusterIPs = before.ClusterIPs
		}
	}
	if NeedsNodePorts(old) && NeedsNodePorts(s) {
		keepNodePorts(s, old)
	}
	if NeedsHealthPort(old) && NeedsHealthPort(s) {
		Set(&spec.HealthCheckNodePort, before.HealthCheckNodePort)
	}
	// a client that sets only the address, or only the list, means both
	switch {
	case spec.ClusterIP == before.ClusterIP && len(spec.ClusterIPs) == 0:
		spec.ClusterIPs = before.ClusterIPs
	case spec.ClusterIP != before.ClusterIP && slices.Equal(spec.ClusterIPs, before.ClusterIPs) && spec.ClusterIP == "":
		spec.ClusterIPs = nil
	case spec.ClusterIP != before.ClusterIP && slices.Equal(spec.ClusterIPs, before.ClusterIPs):
		spec.ClusterIPs = []string{spec.ClusterIP}
	}
}

// keepNodePorts sets missing node ports to the node ports of the old ports with the same names.
// Upstream: pkg/registry/core/service/storage/storage.go: patchAllocatedValues
func keepNodePorts(s, old *corev1.Service) {
	used, named := map[int32]bool{}, map[string]int32{}
	for _, port := range s.Spec.Ports {
		used[port.NodePort] = true
	}
	for _, port := range old.Spec.Ports {
		named[port.Name] = port.NodePort
	}
	s.Spec.Ports = slices.Clone(s.Spec.Ports)
	for i := range s.Spec.Ports {
		if port := &s.Spec.Ports[i]; port.NodePort == 0 && !used[named[port.Name]] {
			port.NodePort = named[port.Name]
		}
	}
}
