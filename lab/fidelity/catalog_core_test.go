// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

var configMaps = &Kind{
	GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ConfigMap"),
	Strategic:        true,
	Content:          Object{"data": Object{"a": "1"}},
	Applied:          Object{},
	Changes: []Edit{
		Set("data/a", "1"), Set("data/a", "2"), Set("data/b", "1"), Set("data/b", ""), Remove("data/a"), Remove("data"), Set(
			"data", Object{},
		),
		Set("binaryData", Object{"bin": "AQID"}), Remove("binaryData"), Set("immutable", true), Set("immutable", false),
	},
	Faults: []Edit{
		Set("data", Object{"not a key": "x"}), Set("binaryData", Object{
			"a": "AQID",
		}), Set("data", Object{"..": "x"}), Set("unknown", "field"),
	},
}

var secrets = &Kind{
	GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Secret"),
	Strategic:        true,
	Content:          Object{"stringData": Object{"a": "1"}},
	Applied:          Object{},
	Changes: []Edit{
		Set("data/a", "AQID"), Set("stringData", Object{"a": "2"}), Set("stringData", Object{"b": "1"}), Remove("data/a"),
		Remove("data"),
		Set("type", "example.com/own"), Set("type", "Opaque"), Set("immutable", true),
	},
	Faults: []Edit{
		Set("type", "kubernetes.io/tls"), Set("type", "kubernetes.io/basic-auth"), Set("stringData", Object{
			"not a key": "x",
		}), Set("type", "kubernetes.io/dockerconfigjson"),
	},
}

var serviceAccounts = &Kind{
	GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ServiceAccount"),
	Strategic:        true,
	Content:          Object{},
	Applied:          Object{},
	Changes: []Edit{
		Set("automountServiceAccountToken", false), Set("automountServiceAccountToken", true),
		Remove("automountServiceAccountToken"),
		Set("secrets", []any{Object{"name": "one"}}), Set("secrets/[name=two]", Object{
			"name": "two",
		}), Remove("secrets/[name=one]"),
		Set("imagePullSecrets", []any{Object{"name": "one"}}), Set("imagePullSecrets/[name=two]", Object{
			"name": "two",
		}), Remove("imagePullSecrets"),
	},
}

var services = &Kind{
	GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Service"),
	NoCopies:         true, // addresses that are taken
	Status:           true,
	Strategic:        true,
	Content:          Object{"spec": Object{"ports": []any{Object{"port": int64(80)}}, "selector": Object{"app": "x"}}},
	Applied:          Object{"spec": Object{"ports": []any{Object{"port": int64(80)}}}},
	Changes: []Edit{
		Set("spec/ports", []any{
			Object{"name": "http", "port": int64(80)}, Object{"name": "dns", "port": int64(53), "protocol": "UDP"},
		}),
		Set("spec/ports", []any{Object{"port": int64(81), "targetPort": "web"}}),
		Set("spec/ports/[port=80]/targetPort", int64(8080)),
		Set("spec/ports/[port=80]/name", "http"),
		Set("spec/selector/app", "y"), Set("spec/selector/tier", "web"),
		Set("spec/clusterIP", "None"), Set("spec/type", "NodePort"), Set("spec/type", "ClusterIP"), Set(
			"spec/type", "LoadBalancer",
		),
		Set("spec/sessionAffinity", "ClientIP"), Set("spec/sessionAffinity", "None"), Set(
			"spec/publishNotReadyAddresses", true,
		),
		Set("spec/internalTrafficPolicy", "Local"), Set("spec/externalIPs", []any{"192.0.2.1"}),
	},
	Faults: []Edit{
		Set("spec/ports", []any{}), Set("spec/type", "Unheard"),
		Set("spec/ports", []any{Object{"port": int64(80)}, Object{"port": int64(81)}}),
		Set("spec/ports", []any{Object{"name": "a", "port": int64(80)}, Object{"name": "a", "port": int64(81)}}),
		Set("spec/ports", []any{
			Object{"port": int64(0)},
		}), Set("spec/selector", Object{"not a key": "x"}), Set("spec/sessionAffinity", "Sometimes"),
		Set("spec/ports", []any{
			Object{"port": int64(80), "protocol": "ICMP"},
		}), Remove("spec/clusterIP"), Set("spec/externalName", "example.com"),
	},
	StatusChanges: []Edit{
		Set("status/loadBalancer/ingress", []any{Object{"ip": "192.0.2.7"}}), Set("status/loadBalancer", Object{}),
		Set("status/conditions", []any{condition("Ready", "True", "2001-01-01T00:00:00Z")}),
	},
}

var pods = &Kind{
	GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Pod"),
	Status:           true,
	Evictions:        true,
	Strategic:        true,
	Content:          Object{"spec": Object{"containers": []any{Object{"name": "app", "image": "example.com/app:1"}}}},
	Applied:          Object{"spec": Object{"containers": []any{Object{"name": "app", "image": "example.com/app:1"}}}},
	Changes: []Edit{
		Set("spec/containers/[name=app]/image", "example.com/app:2"),
		Set("spec/containers/[name=app]/image", "example.com/app"),
		Set("spec/nodeName", "node"), Set("spec/nodeName", "node"), Set("spec/restartPolicy", "Never"), Set(
			"spec/terminationGracePeriodSeconds", int64(60),
		),
		Set("spec/containers/[name=side]", Object{
			"name": "side", "image": "example.com/side",
		}), Remove("spec/containers/[name=side]"),
		Set("spec/activeDeadlineSeconds", int64(100)), Set("spec/activeDeadlineSeconds", int64(50)),
		Set("spec/tolerations", []any{Object{"key": "k", "operator": "Exists"}}),
		Set("spec/containers/[name=app]/env", []any{Object{"name": "A", "value": "1"}}),
		Set("spec/containers/[name=app]/resources", Object{
			"requests": Object{"cpu": "0.5", "memory": "1024Mi"}, "limits": Object{"cpu": "1000m"},
		}),
		Set("spec/containers/[name=app]/ports", []any{Object{"containerPort": int64(80)}}),
		Set("spec/containers/[name=app]/livenessProbe", Object{"httpGet": Object{"port": int64(80)}}),
		Set("spec/volumes", []any{Object{"name": "config", "configMap": Object{"name": "a"}}}),
	},
	Faults: []Edit{
		Set("spec/containers", []any{}), Set("spec/containers/[name=app]/image", ""), Set(
			"spec/containers/[name=app]/name", "Not A Name",
		),
		Set("spec/restartPolicy", "Sometimes"), Set("spec/containers", []any{
			Object{"name": "app", "image": "i"}, Object{"name": "app", "image": "i"},
		}),
		Set("spec/containers/[name=app]/volumeMounts", []any{
			Object{"name": "absent", "mountPath": "/m"},
		}), Set("spec/terminationGracePeriodSeconds", int64(-1)),
	},
	StatusChanges: []Edit{
		Set("status/phase", "Running"), Set("status/phase", "Succeeded"), Set("status/podIPs", []any{
			Object{"ip": "192.0.2.5"},
		}), Set("status/message", "words"),
		Set("status/conditions", []any{condition("Ready", "True", "2001-01-01T00:00:00Z")}), Remove("status/conditions"),
		Set("status/conditions/[type=Ready]", condition("Ready", "False", "2001-01-02T00:00:00Z")),
	},
	Selectors: []string{"spec.nodeName=node", "status.phase=Pending", "status.phase!=Running"},
}

var clusterRoles = &Kind{
	GroupVersionKind: rbacv1.SchemeGroupVersion.WithKind("ClusterRole"),
	ClusterScoped:    true,
	Strategic:        true,
	Content: Object{
		"rules": []any{Object{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{"get"}}},
	},
	Applied: Object{},
	Changes: []Edit{
		Set("rules", []any{
			Object{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{"get", "list"}},
		}), Remove("rules"),
		Set("aggregationRule", Object{"clusterRoleSelectors": []any{Object{"matchLabels": Object{"fidelity-never": "x"}}}}),
	},
	Faults: []Edit{Set("rules", []any{Object{"apiGroups": []any{""}, "resources": []any{"pods"}}})},
}

func condition(kind, status, since string) Object {
	return Object{"type": kind, "status": status, "lastTransitionTime": since, "reason": "Tested", "message": ""}
}

var namespaces = &Kind{
	GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Namespace"),
	ClusterScoped:    true,
	Status:           true,
	Strategic:        true,
	Content:          Object{},
	Applied:          Object{},
	StatusChanges: []Edit{
		Set("status/conditions", []any{condition("NamespaceContentRemaining", "True", "2001-01-01T00:00:00Z")}),
	},
}
