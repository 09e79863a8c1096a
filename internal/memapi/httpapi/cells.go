// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"cmp"
	"fmt"
	"strings"
)

func podReady(obj map[string]any) any {
	containers, _ := at(obj, "spec", "containers").([]any)
	ready := 0
	for _, is := range eachOf(at(obj, "status", "containerStatuses"), "ready") {
		if is == "true" {
			ready++
		}
	}
	return fmt.Sprintf("%d/%d", ready, len(containers))
}

// podStatus returns the phase of a pod, or the reason for which a container does not run.
func podStatus(obj map[string]any) any {
	if at(obj, "metadata", "deletionTimestamp") != nil {
		return "Terminating"
	}
	status := fmt.Sprint(or(at(obj, "status", "reason"), or(at(obj, "status", "phase"), "Unknown")))
	containers, _ := at(obj, "status", "containerStatuses").([]any)
	for _, container := range containers {
		container, _ := container.(map[string]any)
		for _, state := range []string{"waiting", "terminated"} {
			if reason, ok := at(container, "state", state, "reason").(string); ok {
				status = reason
			}
		}
	}
	return status
}

func podRestarts(obj map[string]any) any {
	restarts := int64(0)
	containers, _ := at(obj, "status", "containerStatuses").([]any)
	for _, container := range containers {
		container, _ := container.(map[string]any)
		n, _ := container["restartCount"].(int64)
		restarts += n
	}
	return fmt.Sprint(restarts)
}

func jobStatus(obj map[string]any) any {
	for kind, name := range map[string]string{"Complete": "Complete", "Failed": "Failed", "Suspended": "Suspended"} {
		if conditionName(obj, kind, "") == kind {
			return name
		}
	}
	return "Running"
}

// conditionName returns the type of a condition if it is true.
func conditionName(obj map[string]any, kind, otherwise string) string {
	conditions, _ := at(obj, "status", "conditions").([]any)
	for _, condition := range conditions {
		if condition, ok := condition.(map[string]any); ok && condition["type"] == kind && condition["status"] == "True" {
			return kind
		}
	}
	return otherwise
}

func externalIP(obj map[string]any) any {
	switch at(obj, "spec", "type") {
	case "ExternalName":
		return fmt.Sprint(or(at(obj, "spec", "externalName"), "<none>"))
	case "LoadBalancer":
		ingress := at(obj, "status", "loadBalancer", "ingress")
		for _, found := range append(eachOf(ingress, "ip"), eachOf(ingress, "hostname")...) {
			if found != "" {
				return found
			}
		}
		return "<pending>"
	}
	return "<none>"
}

func servicePorts(obj map[string]any) any {
	ports, _ := at(obj, "spec", "ports").([]any)
	var found []string
	for _, port := range ports {
		port, _ := port.(map[string]any)
		text := fmt.Sprint(port["port"])
		if node, ok := port["nodePort"].(int64); ok && node > 0 {
			text += fmt.Sprintf(":%d", node)
		}
		found = append(found, text+"/"+fmt.Sprint(or(port["protocol"], "TCP")))
	}
	return cmp.Or(strings.Join(found, ","), "<none>")
}

func involved(obj map[string]any) any {
	return fmt.Sprintf("%s/%v", strings.ToLower(fmt.Sprint(or(at(obj, "involvedObject", "kind"), ""))),
		or(at(obj, "involvedObject", "name"), ""))
}

func roleRef(obj map[string]any) any {
	return fmt.Sprintf("%v/%v", at(obj, "roleRef", "kind"), at(obj, "roleRef", "name"))
}

func ingressHosts(obj map[string]any) any {
	var hosts []string
	for _, host := range eachOf(at(obj, "spec", "rules"), "host") {
		hosts = append(hosts, cmp.Or(host, "*"))
	}
	return cmp.Or(strings.Join(hosts, ","), "*")
}
