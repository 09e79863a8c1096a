// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"encoding/json"
	"maps"
	"net"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"trueup.dev/internal/defaults"
)

const immutableMessage = "field is immutable when `immutable` is set"

func validateConfigMap(c *corev1.ConfigMap) field.ErrorList {
	var errs field.ErrorList
	size := 0
	for _, key := range slices.Sorted(maps.Keys(c.Data)) {
		at := field.NewPath("data").Key(key)
		errs = append(errs, invalid(at, key, utilvalidation.IsConfigMapKey(key))...)
		if _, ok := c.BinaryData[key]; ok {
			errs = append(errs, field.Invalid(at, key, "duplicate of key present in binaryData"))
		}
		size += len(c.Data[key])
	}
	for _, key := range slices.Sorted(maps.Keys(c.BinaryData)) {
		errs = append(errs, invalid(field.NewPath("binaryData").Key(key), key, utilvalidation.IsConfigMapKey(key))...)
		size += len(c.BinaryData[key])
	}
	if size > corev1.MaxSecretSize {
		errs = append(errs, field.TooLong(field.NewPath(""), "", corev1.MaxSecretSize))
	}
	return errs
}

func validateConfigMapUpdate(c, old *corev1.ConfigMap) field.ErrorList {
	var errs field.ErrorList
	if old.Immutable == nil || !*old.Immutable {
		return validateConfigMap(c)
	}
	if c.Immutable == nil || !*c.Immutable {
		errs = append(errs, field.Forbidden(field.NewPath("immutable"), immutableMessage))
	}
	if !maps.Equal(c.Data, old.Data) {
		errs = append(errs, field.Forbidden(field.NewPath("data"), immutableMessage))
	}
	if !reflect.DeepEqual(c.BinaryData, old.BinaryData) {
		errs = append(errs, field.Forbidden(field.NewPath("binaryData"), immutableMessage))
	}
	return append(errs, validateConfigMap(c)...)
}

func validateSecret(s *corev1.Secret) field.ErrorList {
	var errs field.ErrorList
	data := field.NewPath("data")
	size := 0
	for _, key := range slices.Sorted(maps.Keys(s.Data)) {
		errs = append(errs, invalid(data.Key(key), key, utilvalidation.IsConfigMapKey(key))...)
		size += len(s.Data[key])
	}
	if size > corev1.MaxSecretSize {
		errs = append(errs, field.TooLong(data, "", corev1.MaxSecretSize))
	}
	missing := func(keys ...string) {
		for _, key := range keys {
			if _, ok := s.Data[key]; !ok {
				errs = append(errs, field.Required(data.Key(key), ""))
			}
		}
	}
	isJSON := func(key string) {
		if missing(key); s.Data[key] == nil {
			return
		}
		if err := json.Unmarshal(s.Data[key], &map[string]any{}); err != nil {
			errs = append(errs, field.Invalid(data.Key(key), "<secret contents redacted>", err.Error()))
		}
	}
	switch s.Type {
	case corev1.SecretTypeServiceAccountToken:
		if s.Annotations[corev1.ServiceAccountNameKey] == "" {
			errs = append(errs, field.Required(metaPath.Child("annotations").Key(corev1.ServiceAccountNameKey), ""))
		}
	case corev1.SecretTypeDockercfg:
		isJSON(corev1.DockerConfigKey)
	case corev1.SecretTypeDockerConfigJson:
		isJSON(corev1.DockerConfigJsonKey)
	case corev1.SecretTypeBasicAuth:
		if s.Data[corev1.BasicAuthUsernameKey] == nil && s.Data[corev1.BasicAuthPasswordKey] == nil {
			missing(corev1.BasicAuthUsernameKey, corev1.BasicAuthPasswordKey)
		}
	case corev1.SecretTypeSSHAuth:
		if len(s.Data[corev1.SSHAuthPrivateKey]) == 0 {
			errs = append(errs, field.Required(data.Key(corev1.SSHAuthPrivateKey), ""))
		}
	case corev1.SecretTypeTLS:
		missing(corev1.TLSCertKey, corev1.TLSPrivateKeyKey)
	}
	return errs
}

func validateSecretUpdate(s, old *corev1.Secret) field.ErrorList {
	errs := validation.ValidateImmutableField(s.Type, old.Type, field.NewPath("type"))
	if old.Immutable == nil || !*old.Immutable {
		return append(errs, validateSecret(s)...)
	}
	if s.Immutable == nil || !*s.Immutable {
		errs = append(errs, field.Forbidden(field.NewPath("immutable"), immutableMessage))
	}
	if !reflect.DeepEqual(s.Data, old.Data) {
		errs = append(errs, field.Forbidden(field.NewPath("data"), immutableMessage))
	}
	return append(errs, validateSecret(s)...)
}

func validateNewService(s *corev1.Service) field.ErrorList {
	if errs := validateFamilies(&s.Spec); len(errs) > 0 {
		return errs
	}
	return validateService(s)
}

func validateService(s *corev1.Service) field.ErrorList {
	var errs field.ErrorList
	spec, headless := &s.Spec, s.Spec.ClusterIP == corev1.ClusterIPNone
	if len(spec.Ports) == 0 && !headless && spec.Type != corev1.ServiceTypeExternalName {
		errs = append(errs, field.Required(specPath.Child("ports"), ""))
	}
	switch {
	case spec.Type == corev1.ServiceTypeExternalName:
		if len(spec.ClusterIPs) > 0 {
			errs = append(errs, field.Forbidden(specPath.Child("clusterIPs"), "may not be set for ExternalName services"))
		}
		if spec.ExternalName == "" {
			errs = append(errs, field.Required(specPath.Child("externalName"), ""))
		} else {
			errs = append(
				errs,
				invalid(specPath.Child("externalName"), spec.ExternalName, utilvalidation.IsDNS1123Subdomain(spec.ExternalName))...,
			)
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
	if spec.ExternalTrafficPolicy != "" && !defaults.IsExternal(s) {
		errs = append(
			errs,
			field.Invalid(
				specPath.Child("externalTrafficPolicy"), spec.ExternalTrafficPolicy,
				"may only be set for externally-accessible services",
			),
		)
	}
	return errs
}

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
		if ip != corev1.ClusterIPNone && net.ParseIP(ip) == nil {
			errs = append(errs, field.Invalid(at.Index(i), ip, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"))
		}
	}
	return errs
}

// servicePort is what an error shows of a port that is there twice.
type servicePort struct {
	Name        string
	Protocol    corev1.Protocol
	AppProtocol *string
	Port        int32
	TargetPort  int32
	NodePort    int32
}

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

func validateServiceUpdate(s, old *corev1.Service) field.ErrorList {
	if errs := validateClusterIPs(&s.Spec); len(errs) > 0 {
		return errs // they cannot be allocated
	}
	if errs := validateFamilies(&s.Spec); len(errs) > 0 {
		return errs
	}
	return append(validateAddresses(s, old), validateService(s)...)
}

// validateFamilies refuses addresses that only a cluster of both families has. Services without any may have what they
// like, as long as they select nothing.
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

// validateAddresses keeps the addresses of a service, unless its type changes to or from one without any.
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

func validateServiceStatus(s, _ *corev1.Service) field.ErrorList {
	if s.Spec.Type != corev1.ServiceTypeLoadBalancer && len(s.Status.LoadBalancer.Ingress) > 0 {
		return field.ErrorList{
			field.Forbidden(statusPath.Child("loadBalancer", "ingress"), "may only be used when `spec.type` is 'LoadBalancer'"),
		}
	}
	var errs field.ErrorList
	for i, ingress := range s.Status.LoadBalancer.Ingress {
		// it is only a default for those who say that they write a load balancer
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

func validateVolumeClaim(c *corev1.PersistentVolumeClaim) field.ErrorList {
	return validateClaimSpec(&c.Spec, specPath)
}

func validateClaimSpec(spec *corev1.PersistentVolumeClaimSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(spec.AccessModes) == 0 {
		errs = append(errs, field.Required(at.Child("accessModes"), "at least 1 access mode is required"))
	}
	for _, mode := range spec.AccessModes {
		errs = append(
			errs,
			oneOf(
				at.Child("accessModes"), mode, corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOnce,
				corev1.ReadWriteOncePod,
			)...,
		)
	}
	storage := at.Child("resources").Key(string(corev1.ResourceStorage))
	if size, ok := spec.Resources.Requests[corev1.ResourceStorage]; !ok {
		errs = append(errs, field.Required(storage, ""))
	} else if size.Sign() <= 0 {
		errs = append(errs, field.Invalid(storage, size.String(), "must be greater than zero"))
	}
	return errs
}

// validateVolumeClaimUpdate lets a claim be bound once, and grow when it is.
func validateVolumeClaimUpdate(c, old *corev1.PersistentVolumeClaim) field.ErrorList {
	var errs field.ErrorList
	spec, before := c.Spec.DeepCopy(), old.Spec.DeepCopy()
	if before.VolumeName == "" {
		before.VolumeName = spec.VolumeName
	}
	if c.Status.Phase == corev1.ClaimBound {
		if spec.Resources.Requests != nil {
			spec.Resources.Requests[corev1.ResourceStorage] = before.Resources.Requests[corev1.ResourceStorage]
		}
		spec.VolumeAttributesClassName = before.VolumeAttributesClassName
	}
	if !equality.Semantic.DeepEqual(spec, before) {
		errs = append(errs, field.Forbidden(specPath,
			"spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n"+diff.Diff(*before, *spec)))
	}
	size, sizeBefore := c.Spec.Resources.Requests[corev1.ResourceStorage], old.Spec.Resources.Requests[corev1.ResourceStorage]
	if capacity := old.Status.Capacity[corev1.ResourceStorage]; size.Cmp(sizeBefore) < 0 && size.Cmp(capacity) <= 0 {
		errs = append(
			errs,
			field.Forbidden(specPath.Child("resources", "requests", "storage"), "field can not be less than status.capacity"),
		)
	}
	return append(
		errs, validation.ValidateImmutableField(c.Spec.VolumeMode, old.Spec.VolumeMode, field.NewPath("volumeMode"))...,
	)
}

func validateEvent(e *corev1.Event) field.ErrorList {
	if e.EventTime.IsZero() && e.InvolvedObject.Namespace != e.Namespace &&
		(e.InvolvedObject.Namespace != "" || e.Namespace != "default") {
		return field.ErrorList{
			field.Invalid(
				field.NewPath("involvedObject", "namespace"), e.InvolvedObject.Namespace, "does not match event.namespace",
			),
		}
	}
	return nil
}
