// SPDX-License-Identifier: Apache-2.0

package integration

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// appliedKinds returns an object of each kind that controllers apply. The names of objects without a namespace begin
// with prefix.
func appliedKinds(prefix string) []client.Object {
	kinds := append(workloads(), networking()...)
	kinds = append(kinds, namespacedObjects()...)
	return append(kinds, clusterObjects(prefix)...)
}

func workloads() []client.Object {
	return []client.Object{
		&appsv1.Deployment{ObjectMeta: named("web"), Spec: appsv1.DeploymentSpec{
			// A value that is zero, and nevertheless set.
			Replicas: new(int32(0)), Selector: webSelector, Template: podTemplate(),
		}},
		&appsv1.StatefulSet{ObjectMeta: named("web"), Spec: appsv1.StatefulSetSpec{
			Selector: webSelector, Template: podTemplate(), ServiceName: "web",
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: claimSpec}},
		}},
		&appsv1.DaemonSet{
			ObjectMeta: named("web"), Spec: appsv1.DaemonSetSpec{Selector: webSelector, Template: podTemplate()},
		},
		&appsv1.ReplicaSet{
			ObjectMeta: named("set"), Spec: appsv1.ReplicaSetSpec{Selector: webSelector, Template: podTemplate()},
		},
		&corev1.ReplicationController{ObjectMeta: named("old"), Spec: corev1.ReplicationControllerSpec{
			Selector: webLabels, Template: new(podTemplate()), Replicas: new(int32(0)),
		}},
		&appsv1.ControllerRevision{ObjectMeta: named("revision"), Data: runtime.RawExtension{Raw: []byte(`{"a":"b"}`)}},
		&corev1.PodTemplate{ObjectMeta: named("template"), Template: podTemplate()},
		&batchv1.Job{ObjectMeta: named("job"), Spec: batchv1.JobSpec{Template: jobTemplate(), Suspend: new(true)}},
		&batchv1.CronJob{ObjectMeta: named("cron"), Spec: batchv1.CronJobSpec{
			Schedule: "@daily", JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: jobTemplate()}},
		}},
		&autoscalingv2.HorizontalPodAutoscaler{
			ObjectMeta: named("scaler"),
			Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
				ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "none"},
				MaxReplicas:    3,
				Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{
					ScaleUp: &autoscalingv2.HPAScalingRules{},
				},
			},
		},
		&policyv1.PodDisruptionBudget{ObjectMeta: named("budget"), Spec: policyv1.PodDisruptionBudgetSpec{
			Selector: webSelector, MinAvailable: new(intstr.FromInt32(1)),
		}},
	}
}

func networking() []client.Object {
	ports := []corev1.ServicePort{
		{Name: "http", Port: 80}, {Name: "dns-udp", Port: 53, Protocol: corev1.ProtocolUDP}, {Name: "dns", Port: 53},
	}
	pathType := networkingv1.PathTypePrefix
	backend := networkingv1.IngressBackend{
		Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}},
	}
	return []client.Object{
		&corev1.Service{ObjectMeta: named("plain"), Spec: corev1.ServiceSpec{Selector: webLabels, Ports: ports}},
		&corev1.Service{ObjectMeta: named("headless"), Spec: corev1.ServiceSpec{
			Selector: webLabels, Ports: ports, ClusterIP: corev1.ClusterIPNone,
		}},
		&corev1.Service{ObjectMeta: named("node"), Spec: corev1.ServiceSpec{
			Selector: webLabels, Ports: ports, Type: corev1.ServiceTypeNodePort,
		}},
		&corev1.Service{ObjectMeta: named("external"), Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeExternalName, ExternalName: "example.com",
		}},
		&discoveryv1.EndpointSlice{
			ObjectMeta: named("slice"), AddressType: discoveryv1.AddressTypeIPv4,
			Ports: []discoveryv1.EndpointPort{{Port: new(int32(80))}},
		},
		&networkingv1.NetworkPolicy{ObjectMeta: named("policy"), Spec: networkingv1.NetworkPolicySpec{
			Ingress: []networkingv1.NetworkPolicyIngressRule{}, // nothing may come in
			Egress: []networkingv1.NetworkPolicyEgressRule{
				{Ports: []networkingv1.NetworkPolicyPort{{Port: new(intstr.FromInt32(80))}}},
			},
		}},
		&networkingv1.Ingress{ObjectMeta: named("ingress"), Spec: networkingv1.IngressSpec{
			DefaultBackend: &backend,
			Rules: []networkingv1.IngressRule{{IngressRuleValue: networkingv1.IngressRuleValue{
				HTTP: &networkingv1.HTTPIngressRuleValue{
					Paths: []networkingv1.HTTPIngressPath{{Path: "/", PathType: &pathType, Backend: backend}},
				},
			}}},
		}},
	}
}

func namespacedObjects() []client.Object {
	quantities := corev1.ResourceList{"storage": resource.MustParse("1024Gi")}
	return []client.Object{
		&corev1.ConfigMap{ObjectMeta: named("map"), Data: map[string]string{"a": "b", "empty": ""}},
		&corev1.Secret{ObjectMeta: named("secret"), Data: map[string][]byte{"a": []byte("b")}, Immutable: new(false)},
		&corev1.Secret{ObjectMeta: named("strings"), StringData: map[string]string{"a": "b"}},
		&corev1.ServiceAccount{ObjectMeta: named("account"), AutomountServiceAccountToken: new(false)},
		&corev1.PersistentVolumeClaim{ObjectMeta: named("claim"), Spec: claimSpec},
		&corev1.LimitRange{ObjectMeta: named("limits"), Spec: corev1.LimitRangeSpec{
			Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypePersistentVolumeClaim, Max: quantities}},
		}},
		&corev1.ResourceQuota{ObjectMeta: named("quota"), Spec: corev1.ResourceQuotaSpec{
			Hard: corev1.ResourceList{"count/events": resource.MustParse("1000")},
		}},
		&rbacv1.Role{ObjectMeta: named("role"), Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: named("binding"), RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "role"},
			Subjects: []rbacv1.Subject{
				{Kind: "User", Name: "u"}, {Kind: "ServiceAccount", Name: "account", Namespace: "default"},
			},
		},
		&coordinationv1.Lease{ObjectMeta: named("lease"), Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new("me"), LeaseDurationSeconds: new(int32(15)),
		}},
		newResource("custom", map[string]string{"a": "b"}),
	}
}

func clusterObjects(prefix string) []client.Object {
	sideEffects := admissionv1.SideEffectClassNone
	clientConfig := admissionv1.WebhookClientConfig{
		Service: &admissionv1.ServiceReference{Namespace: "default", Name: "web"},
	}
	operations := []admissionv1.RuleWithOperations{{
		Operations: []admissionv1.OperationType{admissionv1.Create},
		Rule: admissionv1.Rule{
			APIGroups: []string{"none.example.com"}, APIVersions: []string{"v1"}, Resources: []string{"nones"},
		},
	}}
	match := &admissionv1.MatchResources{
		ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: operations[0]}},
	}
	return []client.Object{
		&corev1.Namespace{ObjectMeta: named(prefix + "-other")},
		&corev1.PersistentVolume{ObjectMeta: named(prefix), Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{"storage": resource.MustParse("1Gi")}, AccessModes: claimSpec.AccessModes,
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/x"}},
		}},
		&rbacv1.ClusterRole{ObjectMeta: named(prefix), Rules: []rbacv1.PolicyRule{
			{NonResourceURLs: []string{"/healthz"}, Verbs: []string{"get"}},
		}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: named(prefix), RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: prefix},
			Subjects: []rbacv1.Subject{{Kind: "Group", Name: "g"}},
		},
		&schedulingv1.PriorityClass{ObjectMeta: named(prefix), Value: 7},
		&storagev1.StorageClass{ObjectMeta: named(prefix), Provisioner: "example.com/none"},
		&storagev1.CSIDriver{ObjectMeta: named(prefix + ".example.com")},
		&networkingv1.IngressClass{
			ObjectMeta: named(prefix), Spec: networkingv1.IngressClassSpec{Controller: "example.com/none"},
		},
		&nodev1.RuntimeClass{ObjectMeta: named(prefix), Handler: "none"},
		&flowcontrolv1.PriorityLevelConfiguration{
			ObjectMeta: named(prefix), Spec: flowcontrolv1.PriorityLevelConfigurationSpec{
				Type: flowcontrolv1.PriorityLevelEnablementLimited,
				Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
					LimitResponse: flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject},
				},
			},
		},
		&flowcontrolv1.FlowSchema{ObjectMeta: named(prefix), Spec: flowcontrolv1.FlowSchemaSpec{
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: prefix},
		}},
		&admissionv1.MutatingWebhookConfiguration{ObjectMeta: named(prefix), Webhooks: []admissionv1.MutatingWebhook{{
			Name: "a.example.com", SideEffects: &sideEffects, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: clientConfig, Rules: operations,
		}}},
		&admissionv1.ValidatingWebhookConfiguration{
			ObjectMeta: named(prefix), Webhooks: []admissionv1.ValidatingWebhook{{
				Name: "a.example.com", SideEffects: &sideEffects, AdmissionReviewVersions: []string{"v1"},
				ClientConfig: clientConfig, Rules: operations,
			}},
		},
		&admissionv1.ValidatingAdmissionPolicy{ObjectMeta: named(prefix), Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: match, Validations: []admissionv1.Validation{{Expression: "true"}},
		}},
		&admissionv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: named(prefix), Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: prefix, ValidationActions: []admissionv1.ValidationAction{admissionv1.Audit},
			},
		},
	}
}
