// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"

	"trueup.dev/internal/memapi/kinds"
)

// builtinColumns returns the columns of a built-in kind after its name. Kinds without a row have only an age.
func builtinColumns(kind *kinds.Kind) []column {
	if of := columnTable[kind.Plural]; of != nil {
		return of()
	}
	return []column{ageColumn()}
}

// columnTable has the columns of the usual kinds by plural.
// (k8s.io/kubernetes, pkg/printers/internalversion/printers.go)
var columnTable = map[string]func() []column{
	"pods": func() []column {
		return []column{
			texts("Ready", podReady), texts("Status", podStatus), texts("Restarts", podRestarts), ageColumn(),
			wide(texts("IP", orNone("status", "podIP"))), wide(texts("Node", orNone("spec", "nodeName"))),
			wide(texts("Nominated Node", orNone("status", "nominatedNodeName"))),
			wide(texts("Readiness Gates", func(map[string]any) any { return "<none>" })),
		}
	},
	"deployments": func() []column {
		ready := texts("Ready", fraction("status.readyReplicas", "spec.replicas"))
		return append([]column{
			ready, counted(number("Up-to-date", "status", "updatedReplicas")),
			counted(number("Available", "status", "availableReplicas")),
			ageColumn(),
		}, templateColumns(true)...)
	},
	"replicasets": func() []column {
		return append([]column{
			number("Desired", "spec", "replicas"), number("Current", "status", "replicas"),
			number("Ready", "status", "readyReplicas"), ageColumn(),
		}, templateColumns(true)...)
	},
	"statefulsets": func() []column {
		ready := texts("Ready", fraction("status.readyReplicas", "spec.replicas"))
		return append([]column{ready, ageColumn()}, templateColumns(false)...)
	},
	"daemonsets": func() []column {
		return append([]column{
			number("Desired", "status", "desiredNumberScheduled"), number("Current", "status", "currentNumberScheduled"),
			number("Ready", "status", "numberReady"), number("Up-to-date", "status", "updatedNumberScheduled"),
			number("Available", "status", "numberAvailable"),
			texts("Node Selector", pairs("spec", "template", "spec", "nodeSelector")), ageColumn(),
		}, templateColumns(true)...)
	},
	"jobs": func() []column {
		return append([]column{
			texts("Status", jobStatus), texts("Completions", fraction("status.succeeded", "spec.completions")),
			texts("Duration", jobDuration), ageColumn(),
		}, templateColumns(true)...)
	},
	"cronjobs": func() []column {
		return []column{
			texts("Schedule", text("spec", "schedule")), texts("Timezone", orNone("spec", "timeZone")),
			texts("Suspend", func(obj map[string]any) any { return fmt.Sprint(at(obj, "spec", "suspend") == true) }),
			{definition("Active", "integer"), func(obj map[string]any) any {
				active, _ := at(obj, "status", "active").([]any)
				return int64(len(active))
			}},
			texts("Last Schedule", func(obj map[string]any) any {
				if last, ok := at(obj, "status", "lastScheduleTime").(string); ok {
					return age(last)
				}
				return "<none>"
			}), ageColumn(),
		}
	},
	"services": func() []column {
		return []column{
			texts("Type", text("spec", "type")), texts("Cluster-IP", orNone("spec", "clusterIP")),
			texts("External-IP", externalIP), texts("Port(s)", servicePorts), ageColumn(),
			wide(texts("Selector", pairs("spec", "selector"))),
		}
	},
	"configmaps": func() []column {
		return []column{{definition("Data", "string"), size("data", "binaryData")}, ageColumn()}
	},
	"secrets": func() []column {
		return []column{texts("Type", text("type")), {definition("Data", "string"), size("data")}, ageColumn()}
	},
	"serviceaccounts": func() []column { return []column{ageColumn()} },
	"namespaces":      func() []column { return []column{texts("Status", text("status", "phase")), ageColumn()} },
	"nodes": func() []column {
		return []column{
			texts("Status", func(obj map[string]any) any { return conditionName(obj, "Ready", "NotReady") }),
			texts("Roles", func(map[string]any) any { return "<none>" }), ageColumn(),
			texts("Version", text("status", "nodeInfo", "kubeletVersion")),
		}
	},
	"events": func() []column {
		return []column{
			texts("Last Seen", func(obj map[string]any) any {
				last, _ := at(obj, "lastTimestamp").(string)
				recent, _ := at(obj, "eventTime").(string)
				return age(cmp.Or(last, recent))
			}),
			texts("Type", text("type")), texts("Reason", text("reason")), texts("Object", involved),
			texts("Message", func(obj map[string]any) any { return strings.TrimSpace(fmt.Sprint(or(at(obj, "message"), ""))) }),
		}
	},
	"customresourcedefinitions": created,
	"clusterroles":              created,
	"roles":                     created,
	"rolebindings":              func() []column { return []column{texts("Role", roleRef), ageColumn()} },
	"clusterrolebindings":       func() []column { return []column{texts("Role", roleRef), ageColumn()} },
	"leases": func() []column {
		return []column{texts("Holder", text("spec", "holderIdentity")), ageColumn()}
	},
	"persistentvolumeclaims": func() []column {
		return []column{
			texts("Status", text("status", "phase")), texts("Volume", text("spec", "volumeName")),
			texts("Capacity", text("status", "capacity", "storage")), texts("StorageClass", text("spec", "storageClassName")),
			ageColumn(),
		}
	},
	"ingresses": func() []column {
		return []column{texts("Class", orNone("spec", "ingressClassName")), texts("Hosts", ingressHosts), ageColumn()}
	},
	"poddisruptionbudgets": func() []column {
		return []column{
			texts("Min Available", orText("N/A", "spec", "minAvailable")),
			texts("Max Unavailable", orText("N/A", "spec", "maxUnavailable")),
			number("Allowed Disruptions", "status", "disruptionsAllowed"), ageColumn(),
		}
	},
	"horizontalpodautoscalers": func() []column {
		return []column{
			texts("Reference", func(obj map[string]any) any {
				return fmt.Sprintf("%v/%v", at(obj, "spec", "scaleTargetRef", "kind"), at(obj, "spec", "scaleTargetRef", "name"))
			}),
			texts("MinPods", orText("<unset>", "spec", "minReplicas")), number("MaxPods", "spec", "maxReplicas"),
			number("Replicas", "status", "currentReplicas"), ageColumn(),
		}
	},
}

func definition(name, kind string) metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: name, Type: kind}
}

func texts(name string, value func(map[string]any) any) column {
	return column{definition(name, "string"), value}
}

// wide returns a column that is shown only if it is asked for.
func wide(c column) column {
	c.Priority = 1
	return c
}

// counted returns a column of numbers that a server declares as texts.
func counted(c column) column {
	c.Type = "string"
	return c
}

func created() []column {
	return []column{{definition("Created At", "date"), text("metadata", "creationTimestamp")}}
}

// at returns the value of a field, or nil.
func at(obj map[string]any, path ...string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(obj, path...)
	return value
}

func or(value, otherwise any) any {
	if value == nil || value == "" {
		return otherwise
	}
	return value
}

func orText(otherwise string, path ...string) func(map[string]any) any {
	return func(obj map[string]any) any { return fmt.Sprint(or(at(obj, path...), otherwise)) }
}

func text(path ...string) func(map[string]any) any   { return orText("", path...) }
func orNone(path ...string) func(map[string]any) any { return orText("<none>", path...) }

func number(name string, path ...string) column {
	return column{definition(name, "integer"), func(obj map[string]any) any { return or(at(obj, path...), int64(0)) }}
}

// fraction returns a text like "1/2" of two fields, of which the second is 1 by default.
func fraction(part, whole string) func(map[string]any) any {
	return func(obj map[string]any) any {
		return fmt.Sprintf("%v/%v", or(at(obj, strings.Split(part, ".")...), 0), or(at(obj, strings.Split(whole, ".")...), 1))
	}
}

// size returns the number of entries in fields.
func size(fields ...string) func(map[string]any) any {
	return func(obj map[string]any) any {
		n := 0
		for _, field := range fields {
			entries, _ := obj[field].(map[string]any)
			n += len(entries)
		}
		return int64(n)
	}
}

// pairs returns the entries of a map.
func pairs(path ...string) func(map[string]any) any {
	return func(obj map[string]any) any {
		entries, _ := at(obj, path...).(map[string]any)
		if len(entries) == 0 {
			return "<none>"
		}
		var found []string
		for _, key := range slices.Sorted(maps.Keys(entries)) {
			found = append(found, fmt.Sprintf("%s=%v", key, entries[key]))
		}
		return strings.Join(found, ",")
	}
}

// templateColumns are the wide columns of a workload.
func templateColumns(selector bool) []column {
	each := func(field string) func(map[string]any) any {
		return func(obj map[string]any) any {
			return strings.Join(eachOf(at(obj, "spec", "template", "spec", "containers"), field), ",")
		}
	}
	columns := []column{wide(texts("Containers", each("name"))), wide(texts("Images", each("image")))}
	if selector {
		columns = append(columns, wide(texts("Selector", pairs("spec", "selector", "matchLabels"))))
	}
	return columns
}

// eachOf returns a field of each item of a list.
func eachOf(list any, field string) (found []string) {
	items, _ := list.([]any)
	for _, item := range items {
		if item, ok := item.(map[string]any); ok {
			found = append(found, fmt.Sprint(or(item[field], "")))
		}
	}
	return found
}

func jobDuration(obj map[string]any) any {
	start, _ := at(obj, "status", "startTime").(string)
	end, _ := at(obj, "status", "completionTime").(string)
	from, err := time.Parse(time.RFC3339, start)
	if err != nil {
		return ""
	}
	to, err := time.Parse(time.RFC3339, end)
	if err != nil {
		to = time.Now()
	}
	return duration.HumanDuration(to.Sub(from))
}
