// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
)

// kindsWithStatus are the kinds that the fake client knows to have a status sub resource without being told.
var kindsWithStatus = sets.New(
	schema.GroupVersionKind{Version: "v1", Kind: "Namespace"},
	schema.GroupVersionKind{Version: "v1", Kind: "Node"},
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

// kindsWithoutGeneration are kinds with a status whose generation servers do not keep.
var kindsWithoutGeneration = sets.New(
	schema.GroupKind{Kind: "Namespace"},
	schema.GroupKind{Kind: "Node"},
	schema.GroupKind{Kind: "PersistentVolume"},
	schema.GroupKind{Kind: "PersistentVolumeClaim"},
	schema.GroupKind{Kind: "Service"},
	schema.GroupKind{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"},
	schema.GroupKind{Group: "storage.k8s.io", Kind: "VolumeAttachment"},
)

func (r *realism) hasGeneration(gvk schema.GroupVersionKind) bool {
	return r.withStatus.Has(gvk) && !kindsWithoutGeneration.Has(gvk.GroupKind())
}
