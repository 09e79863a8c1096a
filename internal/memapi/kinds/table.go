// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"sync"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"trueup.dev/internal/defaults"
)

var workloadScale = &Scale{
	SpecReplicas: ".spec.replicas", StatusReplicas: ".status.replicas", Selector: ".spec.selector",
}

// builtins is the table of the kinds that Kubernetes 1.37 serves and stores by default.
var builtins = sync.OnceValue(func() map[schema.GroupVersionKind]builtin {
	table := map[string]map[string]builtin{
		"v1": {
			"ConfigMap": {plural: "configmaps", strategy: configMaps},
			"Endpoints": {plural: "endpoints", createsOnUpdate: true, strategy: endpoints},
			"Event":     {plural: "events", createsOnUpdate: true, strategy: events},
			"LimitRange": {
				plural: "limitranges", createsOnUpdate: true,
				strategy: strategyOf[*corev1.LimitRange]{defaults: defaults.LimitRange},
			},
			"Namespace":             {plural: "namespaces", cluster: true, status: true, strategy: namespaces},
			"Node":                  {plural: "nodes", cluster: true, status: true, strategy: nodes, keepsStatus: true},
			"PersistentVolume":      {plural: "persistentvolumes", cluster: true, status: true, strategy: persistentVolumes},
			"PersistentVolumeClaim": {plural: "persistentvolumeclaims", status: true, strategy: volumeClaims},
			"Pod":                   {plural: "pods", status: true, generations: true, graceful: true, strategy: pods},
			"PodTemplate":           {plural: "podtemplates", generations: true, strategy: podTemplates},
			"ReplicationController": {
				plural: "replicationcontrollers", status: true, generations: true, orphans: true, scale: workloadScale,
				strategy: replicationControllers,
			},
			"ResourceQuota":  {plural: "resourcequotas", status: true},
			"Secret":         {plural: "secrets", strategy: secrets},
			"Service":        {plural: "services", status: true, strategy: services, createsOnUpdate: true},
			"ServiceAccount": {plural: "serviceaccounts"},
		},
		"admissionregistration.k8s.io/v1": {
			"MutatingAdmissionPolicy": {
				plural: "mutatingadmissionpolicies", cluster: true, generations: true, conditional: true,
			},
			"MutatingAdmissionPolicyBinding": {
				plural: "mutatingadmissionpolicybindings", cluster: true, generations: true, conditional: true,
			},
			"MutatingWebhookConfiguration": {
				plural: "mutatingwebhookconfigurations", cluster: true, generations: true, conditional: true,
				strategy: strategyOf[*admissionv1.MutatingWebhookConfiguration]{
					defaults: defaults.MutatingWebhooks, validate: validateMutatingWebhooks,
				},
			},
			"ValidatingAdmissionPolicy": {
				plural: "validatingadmissionpolicies", cluster: true, status: true, generations: true, conditional: true,
				keepsMetadata: true,
			},
			"ValidatingAdmissionPolicyBinding": {
				plural: "validatingadmissionpolicybindings", cluster: true, generations: true, conditional: true,
			},
			"ValidatingWebhookConfiguration": {
				plural: "validatingwebhookconfigurations", cluster: true, generations: true, conditional: true,
				strategy: strategyOf[*admissionv1.ValidatingWebhookConfiguration]{
					defaults: defaults.ValidatingWebhooks, validate: validateValidatingWebhooks,
				},
			},
		},
		"apiextensions.k8s.io/v1": {
			"CustomResourceDefinition": {
				plural: "customresourcedefinitions", cluster: true, status: true, generations: true, conditional: true,
				strategy: definitions,
			},
		},
		"apps/v1": {
			"ControllerRevision": {plural: "controllerrevisions", strategy: revisions},
			"DaemonSet":          {plural: "daemonsets", status: true, generations: true, strategy: daemonSets},
			"Deployment": {
				plural: "deployments", status: true, generations: true, scale: workloadScale, strategy: deployments,
			},
			"ReplicaSet": {
				plural: "replicasets", status: true, generations: true, scale: workloadScale, strategy: replicaSets,
			},
			"StatefulSet": {
				plural: "statefulsets", status: true, generations: true, scale: workloadScale, strategy: statefulSets,
			},
		},
		"autoscaling/v1": {
			"HorizontalPodAutoscaler": {plural: "horizontalpodautoscalers", status: true, generations: true},
		},
		"autoscaling/v2": {
			"HorizontalPodAutoscaler": {
				plural: "horizontalpodautoscalers", status: true, generations: true, strategy: autoscalers,
			},
		},
		"batch/v1": {
			"CronJob": {plural: "cronjobs", status: true, generations: true, strategy: cronJobs},
			"Job":     {plural: "jobs", status: true, generations: true, orphans: true, strategy: jobs},
		},
		"certificates.k8s.io/v1": {
			"CertificateSigningRequest": {plural: "certificatesigningrequests", cluster: true, status: true},
			"ClusterTrustBundle":        {plural: "clustertrustbundles", cluster: true, conditional: true},
			"PodCertificateRequest": {
				plural: "podcertificaterequests", status: true, conditional: true, keepsMetadata: true,
			},
		},
		"coordination.k8s.io/v1": {
			"Lease": {plural: "leases", conditional: true, createsOnUpdate: true, strategy: leases},
		},
		"discovery.k8s.io/v1": {
			"EndpointSlice": {plural: "endpointslices", generations: true, strategy: endpointSlices},
		},
		"events.k8s.io/v1": {
			"Event": {plural: "events", createsOnUpdate: true, strategy: newEvents},
		},
		"flowcontrol.apiserver.k8s.io/v1": {
			"FlowSchema": {
				plural: "flowschemas", cluster: true, status: true, generations: true, keepsMetadata: true,
			},
			"PriorityLevelConfiguration": {
				plural: "prioritylevelconfigurations", cluster: true, status: true, generations: true, keepsMetadata: true,
			},
		},
		"networking.k8s.io/v1": {
			"IPAddress": {plural: "ipaddresses", cluster: true},
			"Ingress":   {plural: "ingresses", status: true, generations: true, strategy: ingresses},
			"IngressClass": {
				plural: "ingressclasses", cluster: true, generations: true,
				strategy: strategyOf[*networkingv1.IngressClass]{defaults: defaults.IngressClass},
			},
			"NetworkPolicy": {
				plural: "networkpolicies", generations: true,
				strategy: strategyOf[*networkingv1.NetworkPolicy]{defaults: defaults.NetworkPolicy},
			},
			"ServiceCIDR": {plural: "servicecidrs", cluster: true, status: true, keepsMetadata: true},
		},
		"node.k8s.io/v1": {
			"RuntimeClass": {plural: "runtimeclasses", cluster: true, conditional: true, createsOnUpdate: true},
		},
		"policy/v1": {
			"PodDisruptionBudget": {
				plural: "poddisruptionbudgets", status: true, generations: true, conditional: true, strategy: budgets,
			},
		},
		"rbac.authorization.k8s.io/v1": {
			"ClusterRole": {plural: "clusterroles", cluster: true, createsOnUpdate: true, strategy: clusterRoles},
			"ClusterRoleBinding": {
				plural: "clusterrolebindings", cluster: true, strategy: clusterRoleBindings, createsOnUpdate: true,
			},
			"Role":        {plural: "roles", createsOnUpdate: true, strategy: roles},
			"RoleBinding": {plural: "rolebindings", strategy: roleBindings, createsOnUpdate: true},
		},
		"resource.k8s.io/v1": {
			"DeviceClass": {plural: "deviceclasses", cluster: true, generations: true},
			"DeviceTaintRule": {
				plural: "devicetaintrules", cluster: true, status: true, generations: true, keepsMetadata: true,
			},
			"ResourceClaim":         {plural: "resourceclaims", status: true, keepsMetadata: true},
			"ResourceClaimTemplate": {plural: "resourceclaimtemplates"},
			"ResourceSlice":         {plural: "resourceslices", cluster: true, generations: true},
		},
		"scheduling.k8s.io/v1": {
			"PriorityClass": {plural: "priorityclasses", cluster: true, generations: true, strategy: priorityClasses},
		},
		"storage.k8s.io/v1": {
			"CSIDriver": {
				plural: "csidrivers", cluster: true, generations: true, conditional: true, strategy: csiDrivers,
			},
			"CSINode":            {plural: "csinodes", cluster: true, status: true, conditional: true, keepsMetadata: true},
			"CSIStorageCapacity": {plural: "csistoragecapacities", conditional: true},
			"StorageClass":       {plural: "storageclasses", cluster: true, strategy: storageClasses},
			"VolumeAttachment": {
				plural: "volumeattachments", cluster: true, status: true, conditional: true, keepsMetadata: true,
			},
			"VolumeAttributesClass": {plural: "volumeattributesclasses", cluster: true},
		},
		"storagemigration.k8s.io/v1": {
			"StorageVersionMigration": {
				plural: "storageversionmigrations", cluster: true, status: true, conditional: true, keepsMetadata: true,
			},
		},
	}
	kinds := map[schema.GroupVersionKind]builtin{}
	for version, rows := range table {
		for kind, b := range rows {
			kinds[schema.FromAPIVersionAndKind(version, kind)] = b
		}
	}
	return kinds
})
