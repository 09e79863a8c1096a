// SPDX-License-Identifier: Apache-2.0

package httpapi

import apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

// builtinColumns are the columns of the usual kinds between name and age, by plural. They are fields, as the columns of
// custom resources are. A server computes more of them.
var builtinColumns = map[string][]apiextensionsv1.CustomResourceColumnDefinition{
	"pods": {
		text("Ready", `.status.conditions[?(@.type=="Ready")].status`), text("Status", ".status.phase"),
		wide(text("IP", ".status.podIP")), wide(text("Node", ".spec.nodeName")),
	},
	"deployments": {
		number("Desired", ".spec.replicas"), number("Ready", ".status.readyReplicas"),
		number("Up-to-date", ".status.updatedReplicas"), number("Available", ".status.availableReplicas"), images,
	},
	"replicasets": {
		number("Desired", ".spec.replicas"), number("Current", ".status.replicas"),
		number("Ready", ".status.readyReplicas"), images,
	},
	"statefulsets": {number("Desired", ".spec.replicas"), number("Ready", ".status.readyReplicas"), images},
	"daemonsets": {
		number("Desired", ".status.desiredNumberScheduled"), number("Ready", ".status.numberReady"), images,
	},
	"jobs": {number("Completions", ".spec.completions"), number("Succeeded", ".status.succeeded"), images},
	"cronjobs": {
		text("Schedule", ".spec.schedule"), text("Suspend", ".spec.suspend"),
		date("Last Schedule", ".status.lastScheduleTime"),
	},
	"services": {
		text("Type", ".spec.type"), text("Cluster-IP", ".spec.clusterIP"), text("Port(s)", ".spec.ports[*].port"),
	},
	"secrets":    {text("Type", ".type")},
	"namespaces": {text("Status", ".status.phase")},
	"events": {
		date("Last Seen", ".lastTimestamp"), text("Type", ".type"), text("Reason", ".reason"),
		text("Kind", ".involvedObject.kind"), text("Object", ".involvedObject.name"), text("Message", ".message"),
	},
	"rolebindings":        {text("Role", ".roleRef.name")},
	"clusterrolebindings": {text("Role", ".roleRef.name")},
	"leases":              {text("Holder", ".spec.holderIdentity")},
	"persistentvolumeclaims": {
		text("Status", ".status.phase"), text("Volume", ".spec.volumeName"), text("StorageClass", ".spec.storageClassName"),
	},
	"ingresses": {text("Class", ".spec.ingressClassName"), text("Hosts", ".spec.rules[*].host")},
	"poddisruptionbudgets": {
		text("Min Available", ".spec.minAvailable"), text("Max Unavailable", ".spec.maxUnavailable"),
		number("Allowed Disruptions", ".status.disruptionsAllowed"),
	},
	"horizontalpodautoscalers": {
		text("Reference", ".spec.scaleTargetRef.name"), number("MinPods", ".spec.minReplicas"),
		number("MaxPods", ".spec.maxReplicas"), number("Replicas", ".status.currentReplicas"),
	},
}

// images are the images of a workload.
var images = wide(text("Images", ".spec.template.spec.containers[*].image"))

func text(name, path string) apiextensionsv1.CustomResourceColumnDefinition {
	return apiextensionsv1.CustomResourceColumnDefinition{Name: name, Type: "string", JSONPath: path}
}

func number(name, path string) apiextensionsv1.CustomResourceColumnDefinition {
	return apiextensionsv1.CustomResourceColumnDefinition{Name: name, Type: "integer", JSONPath: path}
}

func date(name, path string) apiextensionsv1.CustomResourceColumnDefinition {
	return apiextensionsv1.CustomResourceColumnDefinition{Name: name, Type: "date", JSONPath: path}
}

// wide returns a column that is shown only if it is asked for.
func wide(c apiextensionsv1.CustomResourceColumnDefinition) apiextensionsv1.CustomResourceColumnDefinition {
	c.Priority = 1
	return c
}
