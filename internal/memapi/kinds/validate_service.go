// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"net"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"trueup.dev/internal/defaults"
)

// Upstream: pkg/apis/core/validation/validation.go: ValidateServiceCreate
// Upstream: pkg/registry/core/service/storage/alloc.go: Allocators.initIPFamilyFields
func validateNewService(s *corev1.Service) field.ErrorList {
	if errs := validateFamilies(&s.Spec); len(errs) > 0 {
		return errs
	}
	return validateService(s)
}

// Upstream: pkg/apis/core/validation/validation.go: validateService, validateLoadBalancerClassField
func validateService(s *corev1.Service) field.ErrorList {
	var errs field.ErrorList
	spec, headless := &s.Spec, s.Spec.ClusterIP == corev1.ClusterIPNone
	if len(spec.Ports) == 0 && !headless && spec.Type != corev1.ServiceTypeExternalName {
		errs = append(errs, field.Required(specPath.Child("ports"), ""))
	}
	errs = append(errs, validateServiceKind(s, headless)...)
	names := map[string]bool{}
	for i := range spec.Ports {
		errs = append(
			errs, validateServicePort(&spec.Ports[i], len(spec.Ports) > 1, names, specPath.Child("ports").Index(i))...,
		)
	}
	if spec.Selector != nil {
		errs = append(errs, metavalidation.ValidateLabels(spec.Selector, specPath.Child("selector"))...)
	}
	errs = append(
		errs,
		oneOf(
			specPath.Child("sessionAffinity"), spec.SessionAffinity, corev1.ServiceAffinityClientIP, corev1.ServiceAffinityNone,
		)...,
	)
	errs = append(errs, validateClusterIPs(spec)...)
	errs = append(errs, oneOf(specPath.Child("type"), spec.Type,
		corev1.ServiceTypeClusterIP, corev1.ServiceTypeExternalName, corev1.ServiceTypeLoadBalancer,
		corev1.ServiceTypeNodePort)...)
	errs = append(errs, validatePortNumbers(spec)...)
	if spec.AllocateLoadBalancerNodePorts != nil && spec.Type != corev1.ServiceTypeLoadBalancer {
		errs = append(
			errs,
			field.Forbidden(specPath.Child("allocateLoadBalancerNodePorts"), "may only be used when `type` is 'LoadBalancer'"),
		)
	}
	if spec.LoadBalancerClass != nil && spec.Type != corev1.ServiceTypeLoadBalancer {
		errs = append(
			errs, field.Forbidden(specPath.Child("loadBalancerClass"), "may only be used when `type` is 'LoadBalancer'"),
		)
	}
	return append(errs, validateTraffic(s)...)
}

// Upstream: pkg/apis/core/validation/validation.go: validateServiceExternalTrafficPolicy
func validateTraffic(s *corev1.Service) field.ErrorList {
	var errs field.ErrorList
	policy, at := s.Spec.ExternalTrafficPolicy, specPath.Child("externalTrafficPolicy")
	if defaults.IsExternal(s) {
		errs = oneOf(at, policy, corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal)
	} else if policy != "" {
		errs = append(errs, field.Invalid(at, policy, "may only be set for externally-accessible services"))
	}
	if port := s.Spec.HealthCheckNodePort; port != 0 && !defaults.NeedsHealthPort(s) {
		errs = append(errs, field.Invalid(specPath.Child("healthCheckNodePort"), port,
			"may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"))
	}
	return errs
}

// validateServiceKind validates what ExternalName and headless services may have.
// Upstream: pkg/apis/core/validation/validation.go: validateService, ValidateServiceClusterIPsRelatedFields
func validateServiceKind(s *corev1.Service, headless bool) (errs field.ErrorList) {
	spec := &s.Spec
	switch {
	case spec.Type == corev1.ServiceTypeExternalName:
		if len(spec.ClusterIPs) > 0 {
			errs = append(errs, field.Forbidden(specPath.Child("clusterIPs"), "may not be set for ExternalName services"))
		}
		if len(spec.IPFamilies) > 0 {
			errs = append(errs, field.Forbidden(specPath.Child("ipFamilies"), "may not be set for ExternalName services"))
		}
		if spec.IPFamilyPolicy != nil {
			errs = append(
				errs, field.Forbidden(specPath.Child("ipFamilyPolicy"), "may not be set for ExternalName services"),
			)
		}
		if name := strings.TrimSuffix(spec.ExternalName, "."); name == "" { // the dot makes a name absolute
			errs = append(errs, field.Required(specPath.Child("externalName"), ""))
		} else {
			errs = append(errs, invalid(specPath.Child("externalName"), name, utilvalidation.IsDNS1123Subdomain(name))...)
		}
	case headless && defaults.NeedsNodePorts(s):
		errs = append(
			errs,
			field.Invalid(
				specPath.Child("clusterIPs").Index(0), spec.ClusterIPs[0],
				"may not be set to 'None' for "+string(spec.Type)+" services",
			),
		)
	}
	return errs
}

// Upstream: pkg/apis/core/validation/validation.go: validateServicePort
func validateServicePort(port *corev1.ServicePort, named bool, names map[string]bool, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if port.Name != "" || named {
		errs = dnsLabel(port.Name, at.Child("name"))
		if port.Name != "" && names[port.Name] {
			errs = append(errs, field.Duplicate(at.Child("name"), port.Name))
		}
		names[port.Name] = true
	}
	errs = append(errs, invalid(at.Child("port"), port.Port, utilvalidation.IsValidPortNum(int(port.Port)))...)
	errs = append(
		errs, oneOf(at.Child("protocol"), port.Protocol, corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP)...,
	)
	if port.TargetPort.Type == intstr.Int {
		return append(
			errs,
			invalid(
				at.Child("targetPort"), port.TargetPort.IntVal, utilvalidation.IsValidPortNum(int(port.TargetPort.IntVal)),
			)...,
		)
	}
	return append(
		errs,
		invalid(at.Child("targetPort"), port.TargetPort.StrVal, utilvalidation.IsValidPortName(port.TargetPort.StrVal))...,
	)
}

// Upstream: pkg/apis/core/validation/validation.go: ValidateServiceClusterIPsRelatedFields
func validateClusterIPs(spec *corev1.ServiceSpec) field.ErrorList {
	at := specPath.Child("clusterIPs")
	switch {
	case spec.Type == corev1.ServiceTypeExternalName:
		return nil
	case spec.ClusterIP == "" && len(spec.ClusterIPs) > 0:
		return field.ErrorList{field.Invalid(at, spec.ClusterIPs, "must be empty when `clusterIP` is not specified")}
	case spec.ClusterIP != "" && len(spec.ClusterIPs) == 0:
		return field.ErrorList{field.Required(at, "")}
	case spec.ClusterIP != "" && spec.ClusterIPs[0] != spec.ClusterIP:
		return field.ErrorList{field.Invalid(at, spec.ClusterIPs, "first value must match `clusterIP`")}
	}
	var errs field.ErrorList
	for i, ip := range spec.ClusterIPs {
		if i == 0 && ip == corev1.ClusterIPNone {
			if len(spec.ClusterIPs) > 1 {
				errs = append(errs, field.Invalid(at, spec.ClusterIPs, "'None' must be the first and only value"))
			}
		} else if net.ParseIP(ip) == nil {
			errs = append(errs, field.Invalid(at.Index(i), ip, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"))
		}
	}
	return errs
}

// servicePort is the form of a duplicate port in errors.
type servicePort struct {
	Name        string
	Protocol    corev1.Protocol
	AppProtocol *string
	Port        int32
	TargetPort  int32
	NodePort    int32
}

// Upstream: pkg/apis/core/validation/validation.go: validateService
func validatePortNumbers(spec *corev1.ServiceSpec) field.ErrorList {
	var errs field.ErrorList
	at := specPath.Child("ports")
	nodePorts, ports := map[servicePort]bool{}, map[servicePort]bool{}
	for i, port := range spec.Ports {
		if port.NodePort != 0 && spec.Type == corev1.ServiceTypeClusterIP {
			errs = append(errs, field.Forbidden(at.Index(i).Child("nodePort"), "may not be used when `type` is 'ClusterIP'"))
		}
	}
	for i, port := range spec.Ports {
		key := servicePort{Protocol: port.Protocol, NodePort: port.NodePort}
		if port.NodePort != 0 && nodePorts[key] {
			errs = append(errs, field.Duplicate(at.Index(i).Child("nodePort"), port.NodePort))
		}
		nodePorts[key] = true
	}
	for i, port := range spec.Ports {
		key := servicePort{Protocol: port.Protocol, Port: port.Port}
		if ports[key] {
			errs = append(errs, field.Duplicate(at.Index(i), key))
		}
		ports[key] = true
	}
	return errs
}

// Upstream: pkg/apis/core/validation/validation.go: ValidateServiceUpdate, validateLoadBalancerClassField
// Upstream: pkg/apis/core/validation/validation.go: validateServiceExternalTrafficFieldsUpdate
func validateServiceUpdate(s, old *corev1.Service) field.ErrorList {
	if errs := validateClusterIPs(&s.Spec); len(errs) > 0 {
		return errs // addresses cannot be allocated
	}
	if errs := validateFamilies(&s.Spec); len(errs) > 0 {
		return errs
	}
	errs := validateAddresses(s, old)
	class, classBefore := s.Spec.LoadBalancerClass, old.Spec.LoadBalancerClass
	if s.Spec.Type == corev1.ServiceTypeLoadBalancer && old.Spec.Type == s.Spec.Type &&
		!equality.Semantic.DeepEqual(class, classBefore) {
		errs = append(errs, field.Invalid(specPath.Child("loadBalancerClass"), class, "may not change once set"))
	}
	if defaults.NeedsHealthPort(old) && defaults.NeedsHealthPort(s) &&
		s.Spec.HealthCheckNodePort != old.Spec.HealthCheckNodePort {
		errs = append(errs, field.Forbidden(specPath.Child("healthCheckNodePort"), "field is immutable"))
	}
	return append(errs, validateService(s)...)
}

// validateFamilies refuses addresses that only a dual-stack cluster has. Headless services without a selector may have
// any.
// Upstream: pkg/registry/core/service/storage/alloc.go: Allocators.initIPFamilyFields
func validateFamilies(spec *corev1.ServiceSpec) field.ErrorList {
	if spec.Type == corev1.ServiceTypeExternalName || spec.ClusterIP == corev1.ClusterIPNone && len(spec.Selector) == 0 {
		return nil
	}
	var errs field.ErrorList
	if policy := spec.IPFamilyPolicy; policy != nil && *policy == corev1.IPFamilyPolicyRequireDualStack {
		errs = append(
			errs,
			field.Invalid(specPath.Child("ipFamilyPolicy"), *policy, "this cluster is not configured for dual-stack services"),
		)
	}
	for i, family := range spec.IPFamilies {
		if family != corev1.IPv4Protocol {
			errs = append(errs, field.Invalid(specPath.Child("ipFamilies").Index(i), family, "not configured on this cluster"))
		}
	}
	return errs
}

// validateAddresses refuses changes of the addresses of a service, unless its type changes to or from one without
// addresses.
// Upstream: pkg/apis/core/validation/validation.go: validateUpgradeDowngradeClusterIPs
func validateAddresses(s, old *corev1.Service) field.ErrorList {
	ips, before := s.Spec.ClusterIPs, old.Spec.ClusterIPs
	headless := s.Spec.ClusterIP == corev1.ClusterIPNone && old.Spec.ClusterIP == corev1.ClusterIPNone
	if s.Spec.Type == corev1.ServiceTypeExternalName || old.Spec.Type == corev1.ServiceTypeExternalName || headless {
		return nil
	}
	at := specPath.Child("clusterIPs")
	if len(ips) == 0 && len(before) > 0 {
		return field.ErrorList{field.Invalid(at.Index(0), ips, "primary clusterIP can not be unset")}
	}
	var errs field.ErrorList
	for i := range min(len(ips), len(before)) {
		if ips[i] != before[i] {
			errs = append(errs, field.Invalid(at.Index(i), ips, "may not change once set"))
		}
	}
	return errs
}

// Upstream: pkg/apis/core/validation/validation.go: ValidateServiceStatusUpdate, ValidateLoadBalancerStatus
func validateServiceStatus(s, _ *corev1.Service) field.ErrorList {
	if s.Spec.Type != corev1.ServiceTypeLoadBalancer && len(s.Status.LoadBalancer.Ingress) > 0 {
		return field.ErrorList{
			field.Forbidden(statusPath.Child("loadBalancer", "ingress"), "may only be used when `spec.type` is 'LoadBalancer'"),
		}
	}
	var errs field.ErrorList
	for i, ingress := range s.Status.LoadBalancer.Ingress {
		// the default applies only to updates that contain the load balancer type
		if ingress.IP != "" && ingress.IPMode == nil {
			errs = append(
				errs,
				field.Required(
					statusPath.Child("loadBalancer", "ingress").Index(i).Child("ipMode"), "must be specified when `ip` is set",
				),
			)
		}
	}
	return errs
}
