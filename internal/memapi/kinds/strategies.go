// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"trueup.dev/internal/defaults"
)

var (
	configMaps = strategyOf[*corev1.ConfigMap]{
		validate: validateConfigMap, replaceValidate: true, validateUpdate: validateConfigMapUpdate, exact: true,
	}
	secrets = strategyOf[*corev1.Secret]{
		defaults: defaults.Secret, validate: validateSecret, replaceValidate: true, validateUpdate: validateSecretUpdate,
		exact: true,
	}
	nodes     = strategyOf[*corev1.Node]{defaults: defaults.Node}
	events    = strategyOf[*corev1.Event]{validate: validateEvent}
	newEvents = strategyOf[*eventsv1.Event]{
		validate: validateNewEvent, replaceValidate: true, validateUpdate: validateNewEventUpdate,
	}
	endpoints = strategyOf[*corev1.Endpoints]{defaults: defaults.Endpoints} //nolint:staticcheck // deprecated, but still served
	leases    = strategyOf[*coordinationv1.Lease]{validate: validateLease}
	ingresses = strategyOf[*networkingv1.Ingress]{validate: validateIngress}
	budgets   = strategyOf[*policyv1.PodDisruptionBudget]{
		validate: validateBudget, validateStatusUpdate: validateBudgetStatus,
	}

	autoscalers = strategyOf[*autoscalingv2.HorizontalPodAutoscaler]{
		defaults: defaults.Autoscaler, validate: validateAutoscaler,
	}
	revisions = strategyOf[*appsv1.ControllerRevision]{validateUpdate: validateRevisionUpdate}

	roles        = strategyOf[*rbacv1.Role]{validate: validateRole}
	clusterRoles = strategyOf[*rbacv1.ClusterRole]{validate: validateClusterRole}
	roleBindings = strategyOf[*rbacv1.RoleBinding]{
		defaults: defaults.RoleBinding, validate: validateRoleBinding, validateUpdate: validateRoleBindingUpdate,
	}
	clusterRoleBindings = strategyOf[*rbacv1.ClusterRoleBinding]{
		defaults: defaults.ClusterRoleBinding, validate: validateClusterRoleBinding,
		validateUpdate: validateClusterRoleBindingUpdate,
	}
	storageClasses = strategyOf[*storagev1.StorageClass]{
		defaults: defaults.StorageClass, validateUpdate: validateStorageClassUpdate,
	}
)

var services = strategyOf[*corev1.Service]{
	defaults: defaults.Service, create: createService, update: updateService,
	validate: validateNewService, replaceValidate: true, validateUpdate: validateServiceUpdate,
	validateStatusUpdate: validateServiceStatus,
}

var namespaces = strategyOf[*corev1.Namespace]{
	defaults: defaults.Namespace,
	// Upstream: pkg/registry/core/namespace/strategy.go: namespaceStrategy.PrepareForCreate
	create: func(n *corev1.Namespace) {
		defaults.Namespace(n) // the name may have been generated
		n.Status = corev1.NamespaceStatus{Phase: corev1.NamespaceActive}
		if !slices.Contains(n.Spec.Finalizers, corev1.FinalizerKubernetes) {
			n.Spec.Finalizers = append(slices.Clone(n.Spec.Finalizers), corev1.FinalizerKubernetes)
		}
	},
	// Upstream: pkg/registry/core/namespace/strategy.go: namespaceStrategy.PrepareForUpdate
	update:               func(n, old *corev1.Namespace) { n.Spec.Finalizers = old.Spec.Finalizers },
	validateStatusUpdate: validateNamespaceStatus,
}

var volumeClaims = strategyOf[*corev1.PersistentVolumeClaim]{
	defaults: defaults.VolumeClaim,
	// Upstream: pkg/registry/core/persistentvolumeclaim/strategy.go: persistentvolumeclaimStrategy.PrepareForCreate
	create:         func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimPending },
	validate:       validateVolumeClaim,
	validateUpdate: validateVolumeClaimUpdate,
}

var persistentVolumes = strategyOf[*corev1.PersistentVolume]{
	defaults: defaults.PersistentVolume,
	// Upstream: pkg/registry/core/persistentvolume/strategy.go: persistentvolumeStrategy.PrepareForCreate
	create: func(v *corev1.PersistentVolume) {
		v.Status = corev1.PersistentVolumeStatus{Phase: corev1.VolumePending, LastPhaseTransitionTime: new(metav1.Now())}
	},
	// Upstream: pkg/registry/core/persistentvolume/strategy.go: persistentvolumeStatusStrategy.PrepareForUpdate
	updateStatus: func(v, old *corev1.PersistentVolume) {
		since, before := &v.Status.LastPhaseTransitionTime, old.Status.LastPhaseTransitionTime
		switch same := v.Status.Phase == old.Status.Phase; {
		case same && *since == nil:
			*since = before
		case !same && (*since == nil || (*since).Equal(before)):
			*since = new(metav1.Now())
		}
	},
}

var endpointSlices = strategyOf[*discoveryv1.EndpointSlice]{
	defaults: defaults.EndpointSlice,
	// Upstream: pkg/registry/discovery/endpointslice/strategy.go: endpointSliceStrategy.PrepareForUpdate
	changed: func(s, old *discoveryv1.EndpointSlice) bool {
		return !maps.Equal(s.Labels, old.Labels) || s.AddressType != old.AddressType ||
			!equality.Semantic.DeepEqual(s.Endpoints, old.Endpoints) || !equality.Semantic.DeepEqual(s.Ports, old.Ports)
	},
	validateUpdate: validateEndpointSliceUpdate,
}

var csiDrivers = strategyOf[*storagev1.CSIDriver]{
	defaults: defaults.CSIDriver,
	// Upstream: pkg/registry/storage/csidriver/strategy.go: csiDriverStrategy.PrepareForCreate
	create: func(d *storagev1.CSIDriver) { d.Generation = 0 },
}

var priorityClasses = strategyOf[*schedulingv1.PriorityClass]{
	// Upstream: pkg/apis/scheduling/v1/defaults.go: SetDefaults_PriorityClass
	defaults: func(c *schedulingv1.PriorityClass) {
		defaults.SetPointer(&c.PreemptionPolicy, corev1.PreemptLowerPriority)
	},
	// Upstream: pkg/registry/scheduling/priorityclass/strategy.go: priorityClassStrategy.PrepareForUpdate
	changed:        func(_, _ *schedulingv1.PriorityClass) bool { return false },
	validateUpdate: validatePriorityClassUpdate,
}

var definitions = strategyOf[*apiextensionsv1.CustomResourceDefinition]{
	// Upstream: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1/defaults.go: SetDefaults_CustomResourceDefinition
	defaults: func(d *apiextensionsv1.CustomResourceDefinition) {
		apiextensionsv1.SetDefaults_CustomResourceDefinition(d)
		apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&d.Spec)
	},
	// Upstream: k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition/strategy.go: PrepareForCreate
	create: func(d *apiextensionsv1.CustomResourceDefinition) { storeVersions(d) },
	// Upstream: k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition/strategy.go: PrepareForUpdate
	update: func(d, _ *apiextensionsv1.CustomResourceDefinition) { storeVersions(d) },
}

// storeVersions records the storage version.
// Upstream: k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition/strategy.go: PrepareForCreate
// Upstream: k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition/strategy.go: PrepareForUpdate
func storeVersions(d *apiextensionsv1.CustomResourceDefinition) {
	for _, v := range d.Spec.Versions {
		if v.Storage && !slices.Contains(d.Status.StoredVersions, v.Name) {
			d.Status.StoredVersions = append(slices.Clone(d.Status.StoredVersions), v.Name)
		}
	}
}
