// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"fmt"
	"hash/fnv"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/defaults"
)

// Upstream: pkg/registry/core/service/storage/storage.go: REST.beginCreate
func createService(s *corev1.Service) {
	if s.Spec.ClusterIP != "" && len(s.Spec.ClusterIPs) == 0 {
		s.Spec.ClusterIPs = []string{s.Spec.ClusterIP}
	}
	allocate(s, nil)
}

// updateService keeps allocated values that an update of a service leaves out, and removes those that its new type does
// not use.
// Upstream: pkg/registry/core/service/storage/storage.go: REST.beginUpdate, normalizeClusterIPs, patchAllocatedValues
// Upstream: pkg/registry/core/service/strategy.go: svcStrategy.PrepareForUpdate
func updateService(s, old *corev1.Service) {
	defaults.KeepAllocated(s, old)
	dropUnused(s, old)
	if s.Spec.Type != corev1.ServiceTypeLoadBalancer {
		s.Status.LoadBalancer = corev1.LoadBalancerStatus{}
	}
	allocate(s, old)
}

// dropUnused removes the values that only the old type of a service uses, unless the update changes them.
// Upstream: pkg/registry/core/service/strategy.go: dropTypeDependentFields
func dropUnused(s, old *corev1.Service) {
	spec, before := &s.Spec, &old.Spec
	if before.Type != corev1.ServiceTypeExternalName && spec.Type == corev1.ServiceTypeExternalName {
		if spec.ClusterIP == before.ClusterIP && slices.Equal(spec.ClusterIPs, before.ClusterIPs) {
			spec.ClusterIP, spec.ClusterIPs = "", nil
		}
		if slices.Equal(spec.IPFamilies, before.IPFamilies) {
			spec.IPFamilies = nil
		}
		if reflect.DeepEqual(spec.IPFamilyPolicy, before.IPFamilyPolicy) {
			spec.IPFamilyPolicy = nil
		}
		spec.InternalTrafficPolicy = nil
	}
	if defaults.NeedsNodePorts(old) && !defaults.NeedsNodePorts(s) && sameNodePorts(s, old) {
		spec.Ports = slices.Clone(spec.Ports)
		for i := range spec.Ports {
			spec.Ports[i].NodePort = 0
		}
	}
	if defaults.NeedsHealthPort(old) && !defaults.NeedsHealthPort(s) &&
		spec.HealthCheckNodePort == before.HealthCheckNodePort {
		spec.HealthCheckNodePort = 0
	}
	if before.Type == corev1.ServiceTypeLoadBalancer && spec.Type != before.Type {
		if reflect.DeepEqual(spec.AllocateLoadBalancerNodePorts, before.AllocateLoadBalancerNodePorts) {
			spec.AllocateLoadBalancerNodePorts = nil
		}
		if reflect.DeepEqual(spec.LoadBalancerClass, before.LoadBalancerClass) {
			spec.LoadBalancerClass = nil
		}
	}
	if defaults.IsExternal(old) && !defaults.IsExternal(s) && spec.ExternalTrafficPolicy == before.ExternalTrafficPolicy {
		spec.ExternalTrafficPolicy = ""
	}
}

// sameNodePorts reports whether all node ports of a service are node ports of the old one.
// Upstream: pkg/registry/core/service/strategy.go: sameNodePorts
func sameNodePorts(s, old *corev1.Service) bool {
	kept := map[int32]bool{0: true}
	for _, p := range old.Spec.Ports {
		kept[p.NodePort] = true
	}
	return !slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return !kept[p.NodePort] })
}

// allocate assigns the addresses and ports that the type of a service needs. They derive from its name and UID: a
// repeated history assigns the same ones, and a recreated service gets others. Ports of the old service are not free.
// Upstream: pkg/registry/core/service/storage/alloc.go: Allocators.allocateCreate, Allocators.allocateUpdate
func allocate(s, old *corev1.Service) {
	spec := &s.Spec
	if spec.Type == corev1.ServiceTypeExternalName {
		return
	}
	name := s.Namespace + "/" + s.Name + "/" + string(s.UID)
	// a service that was created by a write to its status never gets an address
	never := old != nil && old.Spec.ClusterIP == "" && old.Spec.Type != corev1.ServiceTypeExternalName
	if spec.ClusterIP == "" && !never {
		h := hash(name)
		spec.ClusterIP = fmt.Sprintf("10.%d.%d.%d", 96+h>>16&15, h>>8&255, 1+h%254)
	}
	if len(spec.ClusterIPs) == 0 && spec.ClusterIP != "" {
		spec.ClusterIPs = []string{spec.ClusterIP}
	}
	allocateFamilies(s, old)
	allocatePorts(s, old, name)
}

// allocateFamilies assigns the IP families of a service. Without a policy, the number of families is kept.
// Upstream: pkg/registry/core/service/storage/alloc.go: Allocators.initIPFamilyFields
func allocateFamilies(s, old *corev1.Service) {
	spec := &s.Spec
	free := spec.ClusterIP == corev1.ClusterIPNone && len(spec.Selector) == 0 // to have any family
	switch {
	case spec.IPFamilyPolicy != nil:
	case old != nil && old.Spec.IPFamilyPolicy != nil:
		spec.IPFamilyPolicy = old.Spec.IPFamilyPolicy
	case free:
		spec.IPFamilyPolicy = new(corev1.IPFamilyPolicyRequireDualStack)
	default:
		spec.IPFamilyPolicy = new(corev1.IPFamilyPolicySingleStack)
	}
	single := *spec.IPFamilyPolicy == corev1.IPFamilyPolicySingleStack
	switch families := spec.IPFamilies; {
	case len(families) == 0:
		spec.IPFamilies = []corev1.IPFamily{familyOf(spec.ClusterIP)}
	case single && len(families) > 1 && old != nil && slices.Equal(families, old.Spec.IPFamilies):
		spec.IPFamilies = families[:1:1]
	}
	if free && !single && len(spec.IPFamilies) == 1 {
		other := corev1.IPv4Protocol
		if spec.IPFamilies[0] == other {
			other = corev1.IPv6Protocol
		}
		spec.IPFamilies = append(slices.Clip(spec.IPFamilies), other)
	}
}

// Upstream: pkg/registry/core/service/storage/alloc.go: Allocators.txnAllocNodePorts, Allocators.updateNodePorts
// Upstream: pkg/registry/core/service/storage/alloc.go: initNodePorts
func allocatePorts(s, old *corev1.Service, name string) {
	if !defaults.NeedsNodePorts(s) {
		return
	}
	used := map[int32]bool{s.Spec.HealthCheckNodePort: true}
	for _, port := range s.Spec.Ports {
		used[port.NodePort] = true
	}
	if old != nil {
		for _, port := range old.Spec.Ports {
			if used[port.NodePort] = true; port.NodePort != 0 {
				name += fmt.Sprint("/", port.NodePort) // a replaced port gets a number that it did not have before
			}
		}
	}
	next := func(of string) int32 {
		port := int32(30000 + hash(of)%2768)
		for used[port] {
			port = 30000 + (port-29999)%2768
		}
		used[port] = true
		return port
	}
	if s.Spec.Type == corev1.ServiceTypeNodePort || s.Spec.AllocateLoadBalancerNodePorts == nil ||
		*s.Spec.AllocateLoadBalancerNodePorts {
		s.Spec.Ports = slices.Clone(s.Spec.Ports)
		shared := map[int32]int32{} // of a new service, for ports that differ only in protocol
		for _, port := range slices.Backward(s.Spec.Ports) {
			if port.NodePort != 0 && old == nil {
				shared[port.Port] = port.NodePort
			}
		}
		for i := range s.Spec.Ports {
			port := &s.Spec.Ports[i]
			if port.NodePort == 0 {
				port.NodePort = shared[port.Port]
			}
			if port.NodePort == 0 {
				port.NodePort = next(fmt.Sprint(name, ":", port.Name, port.Port, port.Protocol))
			}
			if old == nil {
				shared[port.Port] = port.NodePort
			}
		}
	}
	if defaults.NeedsHealthPort(s) && s.Spec.HealthCheckNodePort == 0 {
		s.Spec.HealthCheckNodePort = next(name)
	}
}

// lastNodePort is the end of the range of node ports, exclusive.
const lastNodePort = 32768

// ShowDryRun changes an object that was prepared for a dry run to the response: it has unused ports instead of those
// that the service would get. The old object is nil for a create.
func (*Kind) ShowDryRun(obj, sent, old client.Object) {
	s, ok := obj.(*corev1.Service)
	if !ok {
		return
	}
	asked := sent.(*corev1.Service)
	kept := map[int32]bool{}
	healthy := asked.Spec.HealthCheckNodePort != 0
	if before, ok := old.(*corev1.Service); ok {
		for _, port := range before.Spec.Ports {
			kept[port.NodePort] = true
		}
		healthy = healthy || before.Spec.HealthCheckNodePort != 0
	}
	last := int32(0)
	for _, port := range asked.Spec.Ports {
		if !kept[port.NodePort] {
			last = max(last, port.NodePort)
		}
	}
	if last == 0 {
		last = lastNodePort
	}
	shown := map[int32]int32{}
	for i := range s.Spec.Ports {
		port := &s.Spec.Ports[i]
		if port.NodePort == 0 || kept[port.NodePort] ||
			slices.ContainsFunc(asked.Spec.Ports, func(p corev1.ServicePort) bool { return p.NodePort == port.NodePort }) {
			continue
		}
		if shown[port.NodePort] == 0 {
			last++
			shown[port.NodePort] = last
		}
		port.NodePort = shown[port.NodePort]
	}
	if s.Spec.HealthCheckNodePort != 0 && !healthy {
		s.Spec.HealthCheckNodePort = last + 1
	}
}

func familyOf(ip string) corev1.IPFamily {
	if strings.Contains(ip, ":") {
		return corev1.IPv6Protocol
	}
	return corev1.IPv4Protocol
}

func hash(text string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(text))
	return h.Sum32()
}
