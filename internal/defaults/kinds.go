// SPDX-License-Identifier: Apache-2.0

package defaults

import (
	"maps"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Update sets the defaults of an object that is about to replace stored, as an API server does, and reports whether it
// supports the kind. Both must have the same Go type. Update does not change anything that the object shares with
// stored.
func Update(obj, stored client.Object) (known bool) {
	switch obj := obj.(type) {
	case *corev1.Service:
		Service(obj)
		updateService(obj, stored.(*corev1.Service))
	case *batchv1.Job:
		updateJob(obj)
	case *appsv1.StatefulSet:
		StatefulSet(obj)
		updateClaimTemplates(obj, stored.(*appsv1.StatefulSet))
	case *appsv1.DaemonSet:
		DaemonSet(obj)
		keepAnnotation(obj, stored, appsv1.DeprecatedTemplateGeneration)
	case *corev1.Namespace:
		Namespace(obj)
		if len(obj.Spec.Finalizers) == 0 {
			obj.Spec.Finalizers = slices.Clone(stored.(*corev1.Namespace).Spec.Finalizers)
		}
	case *corev1.Pod:
		Pod(obj)
		updatePod(&obj.Spec, &stored.(*corev1.Pod).Spec)
	case *corev1.PersistentVolumeClaim:
		VolumeClaim(obj)
		updateVolumeClaim(&obj.Spec, &stored.(*corev1.PersistentVolumeClaim).Spec)
	default:
		return fill(obj)
	}
	return true
}

// fill sets the defaults of a kind that do not depend on the stored object.
func fill(obj client.Object) (known bool) {
	switch obj := obj.(type) {
	case *appsv1.Deployment:
		Deployment(obj)
	case *appsv1.ReplicaSet:
		ReplicaSet(obj)
	case *batchv1.CronJob:
		CronJob(obj)
	case *corev1.ReplicationController:
		ReplicationController(obj)
	case *corev1.PodTemplate:
		PodSpec(&obj.Template.Spec)
	case *autoscalingv1.HorizontalPodAutoscaler:
		SetPointer(&obj.Spec.MinReplicas, 1)
	case *autoscalingv2.HorizontalPodAutoscaler:
		Autoscaler(obj)
	default:
		return fillOther(obj)
	}
	return true
}

func fillOther(obj client.Object) (known bool) {
	switch obj := obj.(type) {
	case *corev1.Secret:
		Secret(obj)
	case *corev1.PersistentVolume:
		PersistentVolume(obj)
	case *corev1.LimitRange:
		LimitRange(obj)
	case *corev1.Endpoints: //nolint:staticcheck // deprecated, but still written
		Endpoints(obj)
	case *discoveryv1.EndpointSlice:
		EndpointSlice(obj)
	case *networkingv1.NetworkPolicy:
		NetworkPolicy(obj)
	case *networkingv1.IngressClass:
		IngressClass(obj)
	case *rbacv1.RoleBinding:
		RoleBinding(obj)
	case *rbacv1.ClusterRoleBinding:
		ClusterRoleBinding(obj)
	case *storagev1.StorageClass:
		StorageClass(obj)
	case *storagev1.CSIDriver:
		CSIDriver(obj)
	case *schedulingv1.PriorityClass:
		SetPointer(&obj.PreemptionPolicy, corev1.PreemptLowerPriority)
	case *admissionv1.ValidatingWebhookConfiguration:
		ValidatingWebhooks(obj)
	case *admissionv1.MutatingWebhookConfiguration:
		MutatingWebhooks(obj)
	case *admissionv1.ValidatingAdmissionPolicy:
		ValidatingPolicy(obj)
	case *admissionv1.ValidatingAdmissionPolicyBinding:
		defaultMatch(obj.Spec.MatchResources)
	case *corev1.ConfigMap, *corev1.ServiceAccount, *corev1.ResourceQuota, *coordinationv1.Lease, *networkingv1.Ingress,
		*policyv1.PodDisruptionBudget, *rbacv1.Role, *rbacv1.ClusterRole:
		// These kinds have no defaults.
	default:
		return false
	}
	return true
}

// updateService keeps the values allocated for a service. IP families belong to the addresses.
// Upstream: pkg/registry/core/service/storage/storage.go: patchAllocatedValues
// Upstream: pkg/registry/core/service/storage/alloc.go: Allocators.initIPFamilyFields
func updateService(s, stored *corev1.Service) {
	KeepAllocated(s, stored)
	spec, before := &s.Spec, &stored.Spec
	if spec.Type == corev1.ServiceTypeExternalName || before.Type == corev1.ServiceTypeExternalName ||
		!slices.Equal(spec.ClusterIPs, before.ClusterIPs) {
		return
	}
	if spec.IPFamilyPolicy == nil {
		spec.IPFamilyPolicy = before.IPFamilyPolicy
	}
	if len(spec.IPFamilies) == 0 {
		spec.IPFamilies = before.IPFamilies
	}
}

// updateJob keeps the selector and the labels that were generated when the job was created. They are immutable.
// Upstream: pkg/registry/batch/job/strategy.go: generateSelectorIfNeeded
func updateJob(j *batchv1.Job) {
	labeled := len(j.Labels) > 0
	Job(j)
	if j.Spec.Selector == nil {
		GenerateJob(j)
	}
	if !labeled {
		j.Labels = j.Spec.Template.Labels
	}
}

// updateClaimTemplates keeps the kinds of claim templates. JSON has them, and the binary encoding of objects does not.
// Upstream: pkg/apis/apps/v1/conversion.go: Convert_apps_StatefulSetSpec_To_v1_StatefulSetSpec
func updateClaimTemplates(obj, stored *appsv1.StatefulSet) {
	for i := range obj.Spec.VolumeClaimTemplates {
		template := &obj.Spec.VolumeClaimTemplates[i]
		if template.TypeMeta == (metav1.TypeMeta{}) && i < len(stored.Spec.VolumeClaimTemplates) {
			template.TypeMeta = stored.Spec.VolumeClaimTemplates[i].TypeMeta
		}
	}
}

// updatePod keeps the values that the default admission plugins set in a pod.
// Upstream: plugin/pkg/admission/priority/admission.go: Plugin.admitPod
func updatePod(spec, stored *corev1.PodSpec) {
	if spec.PriorityClassName == stored.PriorityClassName {
		if spec.Priority == nil {
			spec.Priority = stored.Priority
		}
		if spec.PreemptionPolicy == nil {
			spec.PreemptionPolicy = stored.PreemptionPolicy
		}
	}
}

// updateVolumeClaim keeps the class and the volume that Kubernetes chose for a claim. They are immutable then.
// Upstream: plugin/pkg/admission/storage/storageclass/setdefault/admission.go: claimDefaulterPlugin.Admit
func updateVolumeClaim(spec, stored *corev1.PersistentVolumeClaimSpec) {
	Set(&spec.VolumeName, stored.VolumeName)
	if spec.StorageClassName == nil {
		spec.StorageClassName = stored.StorageClassName
	}
}

// keepAnnotation keeps an annotation that the server would add again.
// Upstream: pkg/apis/apps/v1/conversion.go: Convert_apps_DaemonSet_To_v1_DaemonSet
func keepAnnotation(obj, stored client.Object, name string) {
	value, ok := stored.GetAnnotations()[name]
	annotations := obj.GetAnnotations()
	if _, present := annotations[name]; !ok || present {
		return
	}
	annotations = maps.Clone(annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[name] = value
	obj.SetAnnotations(annotations)
}
