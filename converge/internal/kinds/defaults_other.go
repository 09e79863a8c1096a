// SPDX-License-Identifier: Apache-2.0

package kinds

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

// defaultSecret also moves what clients write as text to where data is, as a server does when it decodes a secret.
func defaultSecret(s *corev1.Secret) {
	setDefault(&s.Type, corev1.SecretTypeOpaque)
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

// defaultNamespace labels namespaces with their names.
func defaultNamespace(n *corev1.Namespace) {
	if n.Name != "" && n.Labels[corev1.LabelMetadataName] != n.Name {
		n.Labels = maps.Clone(n.Labels)
		metav1.SetMetaDataLabel(&n.ObjectMeta, corev1.LabelMetadataName, n.Name)
	}
	setDefault(&n.Status.Phase, corev1.NamespaceActive)
}

func defaultNode(n *corev1.Node) {
	if n.Status.Allocatable == nil {
		n.Status.Allocatable = n.Status.Capacity.DeepCopy()
	}
	roundUp(n.Status.Capacity)
	roundUp(n.Status.Allocatable)
}

func defaultVolumeClaim(c *corev1.PersistentVolumeClaim) {
	setDefault(&c.Status.Phase, corev1.ClaimPending)
	defaultClaimSpec(&c.Spec)
	roundUp(c.Status.Capacity)
	roundUp(c.Status.AllocatedResources)
}

func defaultPersistentVolume(v *corev1.PersistentVolume) {
	setDefault(&v.Status.Phase, corev1.VolumePending)
	setDefault(&v.Spec.PersistentVolumeReclaimPolicy, corev1.PersistentVolumeReclaimRetain)
	setDefaultPointer(&v.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	roundUp(v.Spec.Capacity)
	if v.Spec.HostPath != nil {
		setDefaultPointer(&v.Spec.HostPath.Type, corev1.HostPathUnset)
	}
	if v.Spec.ISCSI != nil {
		setDefault(&v.Spec.ISCSI.ISCSIInterface, "default")
	}
}

// defaultLimitRange derives limits and requests of containers from each other.
func defaultLimitRange(l *corev1.LimitRange) {
	for i := range l.Spec.Limits {
		item := &l.Spec.Limits[i]
		if item.Type == corev1.LimitTypeContainer {
			item.Default = filledFrom(item.Default, item.Max)
			item.DefaultRequest = filledFrom(filledFrom(item.DefaultRequest, item.Default), item.Min)
		}
		for _, list := range []corev1.ResourceList{item.Max, item.Min, item.Default, item.DefaultRequest, item.MaxLimitRequestRatio} {
			roundUp(list)
		}
	}
}

// filledFrom returns a list with what only another one has.
func filledFrom(list, other corev1.ResourceList) corev1.ResourceList {
	filled := other.DeepCopy()
	if filled == nil {
		return list
	}
	maps.Copy(filled, list)
	return filled
}

func defaultEndpoints(e *corev1.Endpoints) { //nolint:staticcheck // deprecated, and served all the same
	for _, subset := range e.Subsets {
		for i := range subset.Ports {
			setDefault(&subset.Ports[i].Protocol, corev1.ProtocolTCP)
		}
	}
}

func defaultEndpointSlice(s *discoveryv1.EndpointSlice) {
	for i := range s.Ports {
		setDefaultPointer(&s.Ports[i].Name, "")
		setDefaultPointer(&s.Ports[i].Protocol, corev1.ProtocolTCP)
	}
}

func defaultNetworkPolicy(p *networkingv1.NetworkPolicy) {
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

func defaultPolicyPorts(ports []networkingv1.NetworkPolicyPort) {
	for i := range ports {
		setDefaultPointer(&ports[i].Protocol, corev1.ProtocolTCP)
	}
}

func defaultIngressClass(c *networkingv1.IngressClass) {
	if c.Spec.Parameters != nil {
		setDefaultPointer(&c.Spec.Parameters.Scope, networkingv1.IngressClassParametersReferenceScopeCluster)
	}
}

func defaultRoleBinding(b *rbacv1.RoleBinding) {
	setDefault(&b.RoleRef.APIGroup, rbacv1.GroupName)
	defaultSubjects(b.Subjects)
}

func defaultClusterRoleBinding(b *rbacv1.ClusterRoleBinding) {
	setDefault(&b.RoleRef.APIGroup, rbacv1.GroupName)
	defaultSubjects(b.Subjects)
}

func defaultSubjects(subjects []rbacv1.Subject) {
	for i := range subjects {
		if kind := subjects[i].Kind; kind == rbacv1.UserKind || kind == rbacv1.GroupKind {
			setDefault(&subjects[i].APIGroup, rbacv1.GroupName)
		}
	}
}

func defaultStorageClass(c *storagev1.StorageClass) {
	setDefaultPointer(&c.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete)
	setDefaultPointer(&c.VolumeBindingMode, storagev1.VolumeBindingImmediate)
}

func defaultCSIDriver(d *storagev1.CSIDriver) {
	setDefaultPointer(&d.Spec.AttachRequired, true)
	setDefaultPointer(&d.Spec.PodInfoOnMount, false)
	setDefaultPointer(&d.Spec.StorageCapacity, false)
	setDefaultPointer(&d.Spec.FSGroupPolicy, storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy)
	if len(d.Spec.VolumeLifecycleModes) == 0 {
		d.Spec.VolumeLifecycleModes = []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent}
	}
	setDefaultPointer(&d.Spec.RequiresRepublish, false)
	setDefaultPointer(&d.Spec.SELinuxMount, false)
	setDefaultPointer(&d.Spec.PreventPodSchedulingIfMissing, false)
}

func defaultValidatingWebhooks(c *admissionv1.ValidatingWebhookConfiguration) {
	for i := range c.Webhooks {
		w := &c.Webhooks[i]
		defaultWebhook(&w.FailurePolicy, &w.MatchPolicy, &w.NamespaceSelector, &w.ObjectSelector, &w.TimeoutSeconds, w.Rules, w.ClientConfig.Service)
	}
}

func defaultMutatingWebhooks(c *admissionv1.MutatingWebhookConfiguration) {
	for i := range c.Webhooks {
		w := &c.Webhooks[i]
		defaultWebhook(&w.FailurePolicy, &w.MatchPolicy, &w.NamespaceSelector, &w.ObjectSelector, &w.TimeoutSeconds, w.Rules, w.ClientConfig.Service)
		setDefaultPointer(&w.ReinvocationPolicy, admissionv1.NeverReinvocationPolicy)
	}
}

func defaultWebhook(
	failure **admissionv1.FailurePolicyType, match **admissionv1.MatchPolicyType, namespaces, objects **metav1.LabelSelector, timeout **int32,
	rules []admissionv1.RuleWithOperations, service *admissionv1.ServiceReference,
) {
	setDefaultPointer(failure, admissionv1.Fail)
	setDefaultPointer(match, admissionv1.Equivalent)
	setDefaultPointer(namespaces, metav1.LabelSelector{})
	setDefaultPointer(objects, metav1.LabelSelector{})
	setDefaultPointer(timeout, 10)
	for i := range rules {
		setDefaultPointer(&rules[i].Scope, admissionv1.AllScopes)
	}
	if service != nil {
		setDefaultPointer(&service.Port, 443)
	}
}
