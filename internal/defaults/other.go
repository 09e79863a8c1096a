// SPDX-License-Identifier: Apache-2.0

package defaults

import (
	"maps"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Secret sets the defaults of a Secret and moves stringData to data, as a server does when it decodes a Secret.
// Upstream: pkg/apis/core/v1/defaults.go: SetDefaults_Secret
// Upstream: pkg/apis/core/v1/conversion.go: Convert_v1_Secret_To_core_Secret
func Secret(s *corev1.Secret) {
	Set(&s.Type, corev1.SecretTypeOpaque)
	if len(s.StringData) > 0 {
		s.Data = maps.Clone(s.Data)
		if s.Data == nil {
			s.Data = map[string][]byte{}
		}
		for key, text := range s.StringData {
			s.Data[key] = []byte(text)
		}
	}
	s.StringData = nil
}

// Namespace adds the label with the name of the namespace.
// Upstream: pkg/apis/core/v1/defaults.go: SetDefaults_Namespace, SetDefaults_NamespaceStatus
func Namespace(n *corev1.Namespace) {
	if n.Name != "" && n.Labels[corev1.LabelMetadataName] != n.Name {
		n.Labels = maps.Clone(n.Labels)
		metav1.SetMetaDataLabel(&n.ObjectMeta, corev1.LabelMetadataName, n.Name)
	}
	Set(&n.Status.Phase, corev1.NamespaceActive)
}

// Node sets the defaults of a Node.
// Upstream: pkg/apis/core/v1/defaults.go: SetDefaults_NodeStatus
func Node(n *corev1.Node) {
	if n.Status.Allocatable == nil {
		n.Status.Allocatable = n.Status.Capacity.DeepCopy()
	}
	roundUp(n.Status.Capacity)
	roundUp(n.Status.Allocatable)
}

// VolumeClaim sets the defaults of a PersistentVolumeClaim.
// Upstream: pkg/apis/core/v1/defaults.go: SetDefaults_PersistentVolumeClaim
func VolumeClaim(c *corev1.PersistentVolumeClaim) {
	Set(&c.Status.Phase, corev1.ClaimPending)
	defaultClaimSpec(&c.Spec)
	syncDataSources(&c.Spec)
	roundUp(c.Status.Capacity)
	roundUp(c.Status.AllocatedResources)
}

// syncDataSources copies the data source of a volume claim between its two fields. Clients may set either of them.
// Upstream: pkg/api/persistentvolumeclaim/util.go: NormalizeDataSources
func syncDataSources(spec *corev1.PersistentVolumeClaimSpec) {
	switch source, ref := spec.DataSource, spec.DataSourceRef; {
	case source != nil && ref == nil:
		spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: source.APIGroup, Kind: source.Kind, Name: source.Name}
	case ref != nil && source == nil && (ref.Namespace == nil || *ref.Namespace == ""):
		spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: ref.APIGroup, Kind: ref.Kind, Name: ref.Name}
	}
}

// PersistentVolume sets the defaults of a PersistentVolume.
// Upstream: pkg/apis/core/v1/defaults.go: SetDefaults_PersistentVolume, SetDefaults_HostPathVolumeSource
func PersistentVolume(v *corev1.PersistentVolume) {
	Set(&v.Status.Phase, corev1.VolumePending)
	Set(&v.Spec.PersistentVolumeReclaimPolicy, corev1.PersistentVolumeReclaimRetain)
	SetPointer(&v.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	roundUp(v.Spec.Capacity)
	if v.Spec.HostPath != nil {
		SetPointer(&v.Spec.HostPath.Type, corev1.HostPathUnset)
	}
	if v.Spec.ISCSI != nil {
		Set(&v.Spec.ISCSI.ISCSIInterface, "default")
	}
}

// LimitRange derives default limits and default requests of containers from each other.
// Upstream: pkg/apis/core/v1/defaults.go: SetDefaults_LimitRangeItem
func LimitRange(l *corev1.LimitRange) {
	for i := range l.Spec.Limits {
		item := &l.Spec.Limits[i]
		if item.Type == corev1.LimitTypeContainer {
			item.Default = filledFrom(item.Default, item.Max)
			item.DefaultRequest = filledFrom(filledFrom(item.DefaultRequest, item.Default), item.Min)
		}
		for _, list := range []corev1.ResourceList{
			item.Max, item.Min, item.Default, item.DefaultRequest, item.MaxLimitRequestRatio,
		} {
			roundUp(list)
		}
	}
}

// filledFrom returns a list with the missing entries added from other.
func filledFrom(list, other corev1.ResourceList) corev1.ResourceList {
	filled := other.DeepCopy()
	if filled == nil {
		return list
	}
	maps.Copy(filled, list)
	return filled
}

// Endpoints sets the defaults of Endpoints.
// Upstream: pkg/apis/core/v1/defaults.go: SetDefaults_Endpoints
func Endpoints(e *corev1.Endpoints) { //nolint:staticcheck // deprecated, but still served
	for _, subset := range e.Subsets {
		for i := range subset.Ports {
			Set(&subset.Ports[i].Protocol, corev1.ProtocolTCP)
		}
	}
}

// EndpointSlice sets the defaults of an EndpointSlice.
// Upstream: pkg/apis/discovery/v1/defaults.go: SetDefaults_EndpointPort
func EndpointSlice(s *discoveryv1.EndpointSlice) {
	for i := range s.Ports {
		SetPointer(&s.Ports[i].Name, "")
		SetPointer(&s.Ports[i].Protocol, corev1.ProtocolTCP)
	}
}

// NetworkPolicy sets the defaults of a NetworkPolicy.
// Upstream: pkg/apis/networking/v1/defaults.go: SetDefaults_NetworkPolicy
func NetworkPolicy(p *networkingv1.NetworkPolicy) {
	for _, rule := range p.Spec.Ingress {
		defaultPolicyPorts(rule.Ports)
	}
	for _, rule := range p.Spec.Egress {
		defaultPolicyPorts(rule.Ports)
	}
	if len(p.Spec.PolicyTypes) == 0 {
		p.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
		if len(p.Spec.Egress) > 0 {
			p.Spec.PolicyTypes = append(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress)
		}
	}
}

// Upstream: pkg/apis/networking/v1/defaults.go: SetDefaults_NetworkPolicyPort
func defaultPolicyPorts(ports []networkingv1.NetworkPolicyPort) {
	for i := range ports {
		SetPointer(&ports[i].Protocol, corev1.ProtocolTCP)
	}
}

// IngressClass sets the defaults of an IngressClass.
// Upstream: pkg/apis/networking/v1/defaults.go: SetDefaults_IngressClass
func IngressClass(c *networkingv1.IngressClass) {
	if c.Spec.Parameters != nil {
		SetPointer(&c.Spec.Parameters.Scope, networkingv1.IngressClassParametersReferenceScopeCluster)
	}
}

// RoleBinding sets the defaults of a RoleBinding.
// Upstream: pkg/apis/rbac/v1/defaults.go: SetDefaults_RoleBinding
func RoleBinding(b *rbacv1.RoleBinding) {
	Set(&b.RoleRef.APIGroup, rbacv1.GroupName)
	defaultSubjects(b.Subjects)
}

// ClusterRoleBinding sets the defaults of a ClusterRoleBinding.
// Upstream: pkg/apis/rbac/v1/defaults.go: SetDefaults_ClusterRoleBinding
func ClusterRoleBinding(b *rbacv1.ClusterRoleBinding) {
	Set(&b.RoleRef.APIGroup, rbacv1.GroupName)
	defaultSubjects(b.Subjects)
}

// Upstream: pkg/apis/rbac/v1/defaults.go: SetDefaults_Subject
func defaultSubjects(subjects []rbacv1.Subject) {
	for i := range subjects {
		if kind := subjects[i].Kind; kind == rbacv1.UserKind || kind == rbacv1.GroupKind {
			Set(&subjects[i].APIGroup, rbacv1.GroupName)
		}
	}
}

// StorageClass sets the defaults of a StorageClass.
// Upstream: pkg/apis/storage/v1/defaults.go: SetDefaults_StorageClass
func StorageClass(c *storagev1.StorageClass) {
	SetPointer(&c.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete)
	SetPointer(&c.VolumeBindingMode, storagev1.VolumeBindingImmediate)
}

// CSIDriver sets the defaults of a CSIDriver.
// Upstream: pkg/apis/storage/v1/defaults.go: SetDefaults_CSIDriver
func CSIDriver(d *storagev1.CSIDriver) {
	SetPointer(&d.Spec.AttachRequired, true)
	SetPointer(&d.Spec.PodInfoOnMount, false)
	SetPointer(&d.Spec.StorageCapacity, false)
	SetPointer(&d.Spec.FSGroupPolicy, storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy)
	if len(d.Spec.VolumeLifecycleModes) == 0 {
		d.Spec.VolumeLifecycleModes = []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent}
	}
	SetPointer(&d.Spec.RequiresRepublish, false)
	SetPointer(&d.Spec.SELinuxMount, false)
	SetPointer(&d.Spec.PreventPodSchedulingIfMissing, false)
}

// ValidatingWebhooks sets the defaults of a ValidatingWebhookConfiguration.
// Upstream: pkg/apis/admissionregistration/v1/defaults.go: SetDefaults_ValidatingWebhook
func ValidatingWebhooks(c *admissionv1.ValidatingWebhookConfiguration) {
	for i := range c.Webhooks {
		w := &c.Webhooks[i]
		defaultWebhook(
			&w.FailurePolicy, &w.MatchPolicy, &w.NamespaceSelector, &w.ObjectSelector, &w.TimeoutSeconds, w.Rules,
			w.ClientConfig.Service,
		)
	}
}

// MutatingWebhooks sets the defaults of a MutatingWebhookConfiguration.
// Upstream: pkg/apis/admissionregistration/v1/defaults.go: SetDefaults_MutatingWebhook
func MutatingWebhooks(c *admissionv1.MutatingWebhookConfiguration) {
	for i := range c.Webhooks {
		w := &c.Webhooks[i]
		defaultWebhook(
			&w.FailurePolicy, &w.MatchPolicy, &w.NamespaceSelector, &w.ObjectSelector, &w.TimeoutSeconds, w.Rules,
			w.ClientConfig.Service,
		)
		SetPointer(&w.ReinvocationPolicy, admissionv1.NeverReinvocationPolicy)
	}
}

// Upstream: pkg/apis/admissionregistration/v1/defaults.go: SetDefaults_ValidatingWebhook, SetDefaults_MutatingWebhook
// Upstream: pkg/apis/admissionregistration/v1/defaults.go: SetDefaults_Rule, SetDefaults_ServiceReference
func defaultWebhook(
	failure **admissionv1.FailurePolicyType, match **admissionv1.MatchPolicyType,
	namespaces, objects **metav1.LabelSelector, timeout **int32, rules []admissionv1.RuleWithOperations,
	service *admissionv1.ServiceReference,
) {
	SetPointer(failure, admissionv1.Fail)
	SetPointer(match, admissionv1.Equivalent)
	SetPointer(namespaces, metav1.LabelSelector{})
	SetPointer(objects, metav1.LabelSelector{})
	SetPointer(timeout, 10)
	for i := range rules {
		SetPointer(&rules[i].Scope, admissionv1.AllScopes)
	}
	if service != nil {
		SetPointer(&service.Port, 443)
	}
}

// ValidatingPolicy sets the defaults of a ValidatingAdmissionPolicy.
// Upstream: pkg/apis/admissionregistration/v1/defaults.go: SetDefaults_ValidatingAdmissionPolicySpec
func ValidatingPolicy(p *admissionv1.ValidatingAdmissionPolicy) {
	SetPointer(&p.Spec.FailurePolicy, admissionv1.Fail)
	defaultMatch(p.Spec.MatchConstraints)
}

// Upstream: pkg/apis/admissionregistration/v1/defaults.go: SetDefaults_MatchResources, SetDefaults_Rule
func defaultMatch(match *admissionv1.MatchResources) {
	if match == nil {
		return
	}
	SetPointer(&match.MatchPolicy, admissionv1.Equivalent)
	SetPointer(&match.NamespaceSelector, metav1.LabelSelector{})
	SetPointer(&match.ObjectSelector, metav1.LabelSelector{})
	for _, rules := range [][]admissionv1.NamedRuleWithOperations{match.ResourceRules, match.ExcludeResourceRules} {
		for i := range rules {
			SetPointer(&rules[i].Scope, admissionv1.AllScopes)
		}
	}
}
