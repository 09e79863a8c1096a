// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"net"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	coordinationv1 "k8s.io/api/coordination/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Upstream: pkg/apis/networking/validation/validation.go: ValidateIngressSpec, validateIngressRules
// Upstream: pkg/apis/networking/validation/validation.go: validateHTTPIngressRuleValue
func validateIngress(i *networkingv1.Ingress) field.ErrorList {
	var errs field.ErrorList
	if i.Spec.DefaultBackend == nil && len(i.Spec.Rules) == 0 {
		errs = append(errs, field.Invalid(specPath, nil, "either `defaultBackend` or `rules` must be specified"))
	}
	if i.Spec.DefaultBackend != nil {
		errs = append(errs, validateBackend(i.Spec.DefaultBackend, specPath.Child("defaultBackend"))...)
	}
	for j, rule := range i.Spec.Rules {
		at := specPath.Child("rules").Index(j)
		if net.ParseIP(rule.Host) != nil {
			errs = append(errs, field.Invalid(at.Child("host"), rule.Host, "must be a DNS name, not an IP address"))
		}
		if strings.Contains(rule.Host, "*") {
			errs = append(errs, invalid(at.Child("host"), rule.Host, utilvalidation.IsWildcardDNS1123Subdomain(rule.Host))...)
		} else if rule.Host != "" {
			errs = append(errs, invalid(at.Child("host"), rule.Host, utilvalidation.IsDNS1123Subdomain(rule.Host))...)
		}
		if rule.HTTP == nil {
			continue
		}
		if len(rule.HTTP.Paths) == 0 {
			errs = append(errs, field.Required(at.Child("http", "paths"), ""))
		}
		for k := range rule.HTTP.Paths {
			errs = append(errs, validateIngressPath(&rule.HTTP.Paths[k], at.Child("http", "paths").Index(k))...)
		}
	}
	return errs
}

// Upstream: pkg/apis/networking/validation/validation.go: validateHTTPIngressPath
func validateIngressPath(p *networkingv1.HTTPIngressPath, at *field.Path) field.ErrorList {
	if p.PathType == nil {
		return field.ErrorList{field.Required(at.Child("pathType"), "pathType must be specified")}
	}
	var errs field.ErrorList
	free := *p.PathType == networkingv1.PathTypeImplementationSpecific
	if types := []networkingv1.PathType{
		networkingv1.PathTypeExact, networkingv1.PathTypeImplementationSpecific, networkingv1.PathTypePrefix,
	}; !slices.Contains(types, *p.PathType) {
		errs = append(errs, field.NotSupported(at.Child("pathType"), *p.PathType, types))
	} else if !strings.HasPrefix(p.Path, "/") && (p.Path != "" || !free) {
		errs = append(errs, field.Invalid(at.Child("path"), p.Path, "must be an absolute path"))
	}
	if *p.PathType == networkingv1.PathTypeExact || *p.PathType == networkingv1.PathTypePrefix {
		for _, part := range []string{"//", "/./", "/../", "%2f", "%2F"} {
			if strings.Contains(p.Path, part) {
				errs = append(errs, field.Invalid(at.Child("path"), p.Path, "must not contain '"+part+"'"))
			}
		}
		for _, end := range []string{"/..", "/."} {
			if strings.HasSuffix(p.Path, end) {
				errs = append(errs, field.Invalid(at.Child("path"), p.Path, "cannot end with '"+end+"'"))
			}
		}
	}
	return append(errs, validateBackend(&p.Backend, at.Child("backend"))...)
}

// Upstream: pkg/apis/networking/validation/validation.go: validateIngressBackend
func validateBackend(b *networkingv1.IngressBackend, at *field.Path) field.ErrorList {
	switch {
	case b.Resource != nil && b.Service != nil:
		return field.ErrorList{field.Invalid(at, "", "cannot set both resource and service backends")}
	case b.Resource != nil:
		return nil
	case b.Service == nil:
		return field.ErrorList{field.Invalid(at, "", "resource or service backend is required")}
	}
	errs := dnsLabel(b.Service.Name, at.Child("service", "name"))
	switch port := b.Service.Port; {
	case port.Name != "" && port.Number != 0:
		errs = append(errs, field.Invalid(at, "", "cannot set both port name & port number"))
	case port.Name != "":
		errs = append(
			errs, invalid(at.Child("service", "port", "name"), port.Name, utilvalidation.IsValidPortName(port.Name))...,
		)
	case port.Number != 0:
		errs = append(
			errs,
			invalid(at.Child("service", "port", "number"), port.Number, utilvalidation.IsValidPortNum(int(port.Number)))...,
		)
	default:
		errs = append(errs, field.Required(at, "port name or number is required"))
	}
	return errs
}

// budgetSpec is the form of a budget in errors.
type budgetSpec struct {
	MinAvailable               *intstr.IntOrString
	Selector                   any
	MaxUnavailable             *intstr.IntOrString
	UnhealthyPodEvictionPolicy *policyv1.UnhealthyPodEvictionPolicyType
}

// Upstream: pkg/apis/policy/validation/validation.go: ValidatePodDisruptionBudgetSpec
func validateBudget(b *policyv1.PodDisruptionBudget) field.ErrorList {
	var errs field.ErrorList
	spec := &b.Spec
	if spec.MinAvailable != nil && spec.MaxUnavailable != nil {
		shown := budgetSpec{
			MinAvailable: spec.MinAvailable, MaxUnavailable: spec.MaxUnavailable,
			UnhealthyPodEvictionPolicy: spec.UnhealthyPodEvictionPolicy,
		}
		if spec.Selector != nil {
			shown.Selector = spec.Selector
		}
		errs = append(errs, field.Invalid(specPath, shown, "minAvailable and maxUnavailable cannot be both set"))
	}
	errs = append(errs, validateIntOrPercent(spec.MinAvailable, specPath.Child("minAvailable"))...)
	errs = append(errs, atMost100Percent(spec.MinAvailable, specPath.Child("minAvailable"))...)
	errs = append(errs, validateIntOrPercent(spec.MaxUnavailable, specPath.Child("maxUnavailable"))...)
	errs = append(errs, atMost100Percent(spec.MaxUnavailable, specPath.Child("maxUnavailable"))...)
	return append(
		errs,
		metavalidation.ValidateLabelSelector(
			spec.Selector, metavalidation.LabelSelectorValidationOptions{}, specPath.Child("selector"),
		)...,
	)
}

// Upstream: pkg/apis/rbac/validation/validation.go: ValidateRole
func validateRole(r *rbacv1.Role) field.ErrorList { return validateRules(r.Rules, true) }

// Upstream: pkg/apis/rbac/validation/validation.go: ValidateClusterRole
func validateClusterRole(r *rbacv1.ClusterRole) field.ErrorList {
	errs := validateRules(r.Rules, false)
	if r.AggregationRule != nil && len(r.AggregationRule.ClusterRoleSelectors) == 0 {
		errs = append(errs, field.Required(field.NewPath("aggregationRule", "clusterRoleSelectors"),
			"at least one clusterRoleSelector required if aggregationRule is non-nil"))
	}
	return errs
}

// Upstream: pkg/apis/rbac/validation/validation.go: ValidatePolicyRule
func validateRules(rules []rbacv1.PolicyRule, namespaced bool) field.ErrorList {
	var errs, missing field.ErrorList
	for i, rule := range rules {
		at := field.NewPath("rules").Index(i)
		if len(rule.Verbs) == 0 {
			missing = append(missing, field.Required(at.Child("verbs"), ""))
		}
		if len(rule.NonResourceURLs) > 0 {
			if namespaced {
				errs = append(
					errs,
					field.Invalid(
						at.Child("nonResourceURLs"), rule.NonResourceURLs, "namespaced rules cannot apply to non-resource URLs",
					),
				)
			}
			if len(rule.APIGroups)+len(rule.Resources)+len(rule.ResourceNames) > 0 {
				errs = append(
					errs,
					field.Invalid(
						at.Child("nonResourceURLs"), rule.NonResourceURLs,
						"rules cannot apply to both regular resources and non-resource URLs",
					),
				)
			}
			continue
		}
		if len(rule.APIGroups) == 0 {
			errs = append(errs, field.Required(at.Child("apiGroups"), "resource rules must supply at least one api group"))
		}
		if len(rule.Resources) == 0 {
			errs = append(errs, field.Required(at.Child("resources"), "resource rules must supply at least one resource"))
		}
	}
	return append(errs, missing...)
}

// Upstream: pkg/apis/rbac/validation/validation.go: ValidateRoleBinding
func validateRoleBinding(b *rbacv1.RoleBinding) field.ErrorList {
	return validateBinding(b.RoleRef, b.Subjects, true, "Role", "ClusterRole")
}

// Upstream: pkg/apis/rbac/validation/validation.go: ValidateClusterRoleBinding
func validateClusterRoleBinding(b *rbacv1.ClusterRoleBinding) field.ErrorList {
	return validateBinding(b.RoleRef, b.Subjects, false, "ClusterRole")
}

// Upstream: pkg/apis/rbac/validation/validation.go: ValidateRoleBinding, ValidateClusterRoleBinding
// Upstream: pkg/apis/rbac/validation/validation.go: ValidateRoleBindingSubject
func validateBinding(ref rbacv1.RoleRef, subjects []rbacv1.Subject, namespaced bool, kinds ...string) field.ErrorList {
	var errs field.ErrorList
	at := field.NewPath("roleRef")
	supported := func(at *field.Path, value string, values ...string) {
		for _, v := range values {
			if v == value {
				return
			}
		}
		errs = append(errs, field.NotSupported(at, value, values))
	}
	supported(at.Child("apiGroup"), ref.APIGroup, rbacv1.GroupName)
	supported(at.Child("kind"), ref.Kind, kinds...)
	var missing field.ErrorList
	if ref.Name == "" {
		missing = append(missing, field.Required(at.Child("name"), ""))
	}
	for i, s := range subjects {
		at := field.NewPath("subjects").Index(i)
		if s.Name == "" {
			missing = append(missing, field.Required(at.Child("name"), ""))
		}
		switch s.Kind {
		case rbacv1.ServiceAccountKind:
			supported(at.Child("apiGroup"), s.APIGroup, "")
			if !namespaced && s.Namespace == "" {
				errs = append(errs, field.Required(at.Child("namespace"), ""))
			}
		case rbacv1.UserKind, rbacv1.GroupKind:
			supported(at.Child("apiGroup"), s.APIGroup, rbacv1.GroupName)
		default:
			supported(at.Child("kind"), s.Kind, rbacv1.ServiceAccountKind, rbacv1.UserKind, rbacv1.GroupKind)
		}
	}
	return append(errs, missing...)
}

// Upstream: pkg/apis/rbac/validation/validation.go: ValidateRoleBindingUpdate
func validateRoleBindingUpdate(b, old *rbacv1.RoleBinding) field.ErrorList {
	return validation.ValidateImmutableField(roleRef(b.RoleRef), roleRef(old.RoleRef), field.NewPath("roleRef"))
}

// Upstream: pkg/apis/rbac/validation/validation.go: ValidateClusterRoleBindingUpdate
func validateClusterRoleBindingUpdate(b, old *rbacv1.ClusterRoleBinding) field.ErrorList {
	return validation.ValidateImmutableField(roleRef(b.RoleRef), roleRef(old.RoleRef), field.NewPath("roleRef"))
}

// roleRef is the form of a role reference in errors.
type roleRef struct{ APIGroup, Kind, Name string }

// Upstream: pkg/apis/coordination/validation/validation.go: ValidateLeaseSpec
func validateLease(l *coordinationv1.Lease) field.ErrorList {
	var errs field.ErrorList
	if n := l.Spec.LeaseDurationSeconds; n != nil && *n <= 0 {
		errs = append(errs, field.Invalid(specPath.Child("leaseDurationSeconds"), *n, "must be greater than 0"))
	}
	if n := l.Spec.LeaseTransitions; n != nil && *n < 0 {
		errs = append(errs, field.Invalid(specPath.Child("leaseTransitions"), *n, "must be greater than or equal to 0"))
	}
	return errs
}

// Upstream: pkg/apis/autoscaling/validation/validation.go: validateHorizontalPodAutoscalerSpec
// Upstream: pkg/apis/autoscaling/validation/validation.go: ValidateCrossVersionObjectReference, ValidateAPIVersion
func validateAutoscaler(h *autoscalingv2.HorizontalPodAutoscaler) field.ErrorList {
	var errs field.ErrorList
	spec := &h.Spec
	if spec.MinReplicas != nil && *spec.MinReplicas < 1 {
		errs = append(
			errs, field.Invalid(specPath.Child("minReplicas"), *spec.MinReplicas, "must be greater than or equal to 1"),
		)
	}
	if spec.MinReplicas != nil && spec.MaxReplicas < *spec.MinReplicas {
		errs = append(
			errs,
			field.Invalid(specPath.Child("maxReplicas"), spec.MaxReplicas, "must be greater than or equal to `minReplicas`"),
		)
	}
	at := specPath.Child("scaleTargetRef")
	if spec.ScaleTargetRef.Kind == "" {
		errs = append(errs, field.Required(at.Child("kind"), ""))
	}
	if spec.ScaleTargetRef.Name == "" {
		errs = append(errs, field.Required(at.Child("name"), ""))
	}
	if spec.ScaleTargetRef.APIVersion == "" && spec.ScaleTargetRef.Kind == "" {
		errs = append(errs, field.Invalid(at.Child("apiVersion"), "", "apiVersion must specify API group"))
	}
	if spec.MaxReplicas == 0 {
		errs = append(errs, field.Required(specPath.Child("maxReplicas"), ""))
	} else if spec.MaxReplicas < 0 {
		errs = append(
			errs, field.Invalid(specPath.Child("maxReplicas"), spec.MaxReplicas, "must be greater than or equal to 1"),
		)
	}
	return errs
}

// Upstream: pkg/apis/scheduling/validation/validation.go: ValidatePriorityClassUpdate
func validatePriorityClassUpdate(c, old *schedulingv1.PriorityClass) field.ErrorList {
	var errs field.ErrorList
	if c.Value != old.Value {
		errs = append(errs, field.Forbidden(field.NewPath("value"), "may not be changed in an update."))
	}
	return append(errs, validation.ValidateImmutableField(
		c.PreemptionPolicy, old.PreemptionPolicy, field.NewPath("preemptionPolicy"))...)
}

// Upstream: pkg/apis/storage/validation/validation.go: ValidateStorageClassUpdate
func validateStorageClassUpdate(c, old *storagev1.StorageClass) field.ErrorList {
	errs := validation.ValidateImmutableField(c.Parameters, old.Parameters, field.NewPath("parameters"))
	if c.Provisioner != old.Provisioner {
		errs = append(errs, field.Invalid(field.NewPath("provisioner"), nil, validation.FieldImmutableErrorMsg))
	}
	errs = append(
		errs, validation.ValidateImmutableField(c.ReclaimPolicy, old.ReclaimPolicy, field.NewPath("reclaimPolicy"))...,
	)
	return append(
		errs,
		validation.ValidateImmutableField(c.VolumeBindingMode, old.VolumeBindingMode, field.NewPath("volumeBindingMode"))...,
	)
}

// Upstream: pkg/apis/discovery/validation/validation.go: ValidateEndpointSliceUpdate
func validateEndpointSliceUpdate(s, old *discoveryv1.EndpointSlice) field.ErrorList {
	if s.AddressType != old.AddressType {
		return field.ErrorList{field.Invalid(field.NewPath("addressType"), nil, validation.FieldImmutableErrorMsg)}
	}
	return nil
}

// Upstream: pkg/apis/apps/validation/validation.go: ValidateControllerRevisionUpdate
func validateRevisionUpdate(r, old *appsv1.ControllerRevision) field.ErrorList {
	return validation.ValidateImmutableField(r.Data, old.Data, field.NewPath("data"))
}
