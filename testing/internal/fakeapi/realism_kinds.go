// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
)

// kindsWithStatus are the kinds for which the fake client has a status subresource by default.
var kindsWithStatus = sets.New(
	schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, schema.GroupVersionKind{Version: "v1", Kind: "Node"},
	schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolume"},
	schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolumeClaim"},
	schema.GroupVersionKind{Version: "v1", Kind: "Pod"},
	schema.GroupVersionKind{Version: "v1", Kind: "ReplicationController"},
	schema.GroupVersionKind{Version: "v1", Kind: "Service"},
	schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
	schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DaemonSet"},
	schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
	schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ReplicaSet"},
	schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"},
	schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "HorizontalPodAutoscaler"},
	schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "CronJob"},
	schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"},
	schema.GroupVersionKind{Group: "certificates.k8s.io", Version: "v1", Kind: "CertificateSigningRequest"},
	schema.GroupVersionKind{Group: "flowcontrol.apiserver.k8s.io", Version: "v1", Kind: "FlowSchema"},
	schema.GroupVersionKind{Group: "flowcontrol.apiserver.k8s.io", Version: "v1", Kind: "PriorityLevelConfiguration"},
	schema.GroupVersionKind{Group: "flowcontrol.apiserver.k8s.io", Version: "v1beta2", Kind: "FlowSchema"},
	schema.GroupVersionKind{Group: "flowcontrol.apiserver.k8s.io", Version: "v1beta2", Kind: "PriorityLevelConfiguration"},
	schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"},
	schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
	schema.GroupVersionKind{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
	schema.GroupVersionKind{Group: "storage.k8s.io", Version: "v1", Kind: "VolumeAttachment"},
)

// withoutGeneration are the kinds of Kubernetes, by group, whose generations a server does not count.
var withoutGeneration = map[string]sets.Set[string]{
	"": sets.New(
		"ConfigMap", "Endpoints", "Event", "LimitRange", "Namespace", "Node", "PersistentVolume", "PersistentVolumeClaim",
		"ResourceQuota", "Secret", "Service", "ServiceAccount",
	),
	"apps":                      sets.New("ControllerRevision"),
	"certificates.k8s.io":       sets.New("CertificateSigningRequest", "ClusterTrustBundle", "PodCertificateRequest"),
	"coordination.k8s.io":       sets.New("Lease"),
	"events.k8s.io":             sets.New("Event"),
	"networking.k8s.io":         sets.New("IPAddress", "ServiceCIDR"),
	"node.k8s.io":               sets.New("RuntimeClass"),
	"rbac.authorization.k8s.io": sets.New("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"),
	"resource.k8s.io":           sets.New("ResourceClaim", "ResourceClaimTemplate"),
	"storage.k8s.io": sets.New(
		"CSINode", "CSIStorageCapacity", "StorageClass", "VolumeAttachment", "VolumeAttributesClass",
	),
	"storagemigration.k8s.io": sets.New("StorageVersionMigration"),
}

// CountsGenerations reports whether a server counts the generations of a kind: it does for custom resources, and for
// most kinds of Kubernetes that have a desired state.
func CountsGenerations(kind schema.GroupKind) bool {
	return !withoutGeneration[kind.Group].Has(kind.Kind)
}

func (r *realism) hasGeneration(gvk schema.GroupVersionKind) bool {
	return r.withStatus.Has(gvk) && CountsGenerations(gvk.GroupKind())
}
