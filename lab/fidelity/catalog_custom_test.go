// SPDX-License-Identifier: Apache-2.0

package fidelity

var gadgets = &Kind{
	GroupVersionKind: fidelityGroup.WithKind("Gadget"),
	Custom:           true,
	Status:           true,
	Scale:            true,
	Content:          Object{"spec": Object{"required": "yes"}},
	Applied:          Object{"spec": Object{"required": "yes"}},
	Changes: []Edit{
		Set("spec/size", int64(5)), Set("spec/size", int64(2)), Remove("spec/size"), Set("spec/mode", "slow"),
		Set("spec/mode", "fast"), Remove("spec/mode"),
		Set("spec/class", "gold"), Set("spec/class", "silver"), Remove("spec/class"), Set("spec/replicas", int64(2)),
		Set("spec/replicas", int64(3)), Remove("spec/replicas"),
		Set("spec/port", int64(80)), Set("spec/port", "http"), Set("spec/memory", "1Gi"), Set("spec/memory", "512Mi"),
		Set("spec/parts", []any{
			Object{"name": "one"}, Object{"name": "two", "weight": int64(2)},
		}), Set("spec/parts", []any{Object{"name": "two"}}),
		Remove("spec/parts"), Set("spec/parts/[name=two]/weight", int64(7)), Set("spec/parts/[name=three]", Object{
			"name": "three",
		}),
		Set("spec/tags", []any{"a", "b"}), Set("spec/tags", []any{"b", "c"}), Set("spec/steps", []any{"x", "x"}),
		Set("spec/steps", []any{"y"}), Remove("spec/steps"),
		Set("spec/nested", Object{
			"level": "low",
		}), Set("spec/nested/level", "high"), Set(
			"spec/nested/enabled", false,
		), Remove("spec/nested"), Set("spec/note", "text"),
		Set("spec/limits", Object{"cpu": "1", "memory": "5"}), Set("spec/limits/cpu", "2"), Set("spec/free", Object{
			"any": Object{"thing": int64(1)},
		}), Set("spec/free/more", "x"),
		Set("spec/until", "2030-01-01T00:00:00Z"), Set("spec/required", "no"), Remove("spec"),
		Set("spec/unknown", "field"), Set("unknown", Object{"field": "x"}),
	},
	Faults: []Edit{
		Set("spec/size", int64(11)), Set("spec/size", int64(-1)), Set("spec/mode", "sideways"),
		Set("spec/class", "far too long"), Set("spec/replicas", int64(90)), Set("spec/size", "big"),
		Set("spec/port", true), Set("spec/memory", "much"), Set("spec/parts", []any{
			Object{"name": "one"}, Object{"name": "one"},
		}), Set("spec/parts", []any{Object{"weight": int64(1)}}),
		Set("spec/parts", []any{
			Object{"name": "one", "weight": int64(-1)},
		}), Set("spec/tags", []any{"a", "a"}), Set("spec/steps", []any{""}), Set("spec/until", "tomorrow"),
		Remove("spec/required"), Set("spec/required", ""), Set("spec", "text"), Set("spec/nested", "text"),
		Set("spec/free", "text"),
		Set("spec/parts", []any{
			Object{"name": "1"}, Object{"name": "2"}, Object{"name": "3"}, Object{"name": "4"}, Object{"name": "5"},
		}),
	},
	StatusChanges: []Edit{
		Set("status/phase", "Ready"), Set("status/phase", "Pending"), Set("status/observedGeneration", int64(1)),
		Set("status/observedGeneration", int64(2)), Set("status/replicas", int64(2)),
		Set("status/selector", "app=x"), Set("status/conditions", []any{
			condition("Ready", "True", "2001-01-01T00:00:00Z"),
		}), Remove("status/conditions"), Remove("status"),
		Set("status/conditions", []any{
			condition("Ready", "False", "2001-01-02T00:00:00Z"), condition("Synced", "True", "2001-01-01T00:00:00Z"),
		}),
	},
	StatusFaults: []Edit{
		Set("status/phase", "Lost"), Set("status/conditions", []any{Object{"type": "Ready", "status": "True"}}), Set(
			"status/conditions", []any{condition("Ready", "Maybe", "2001-01-01T00:00:00Z")},
		),
		Set("status/replicas", "many"),
	},
	Selectors: []string{"spec.mode=slow", "spec.mode!=slow"},
}

var gizmos = &Kind{
	GroupVersionKind: fidelityGroup.WithKind("Gizmo"),
	Custom:           true,
	Untyped:          true,
	Content:          Object{"spec": Object{"active": true}},
	Applied:          Object{"spec": Object{"active": true}},
	Changes: []Edit{
		Set("spec/active", true), Set("spec/active", false), Remove("spec/active"), Set("spec/ratio", 0.5),
		Set("spec/ratio", int64(1)), Set("spec/any", Object{"deep": []any{int64(1), "x"}}),
		Set("spec/any", "scalar"), Set("spec/items", []any{
			Object{"key": "a"}, Object{"key": "b", "value": "c"},
		}), Set("spec/items", []any{}), Remove("spec/items"),
		Set("spec/embedded", Object{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": Object{"name": "x"}, "data": Object{"a": "b"},
		}), Set("spec/byName/one", int64(1)),
		Set("spec/byName", Object{
			"two": int64(2),
		}), Set("spec/atomic", Object{"a": "1"}), Set("spec/atomic", Object{"b": "1"}), Set("data", "short"), Remove("data"),
		Set("spec/unknown", "field"), Set("spec/quantity", "1024Mi"), Set("spec/quantity", int64(1)),
		Set("spec/until", "2030-01-01T02:00:00+02:00"), Set("spec/nested", Object{}),
	},
	Faults: []Edit{
		Set("spec/until", "tomorrow"), Set("spec/active", "yes"), Set("spec/ratio", 1.5), Set("spec/embedded", Object{
			"no": "kind",
		}), Set("spec/byName", Object{"one": "1"}), Set("data", "too long"), Remove("spec"),
		Set("spec/items", "none"),
	},
	StatusChanges: []Edit{Set("status/phase", "Ready"), Set("status/any", []any{"x"}), Remove("status")},
}

var realms = &Kind{
	GroupVersionKind: fidelityGroup.WithKind("Realm"),
	Custom:           true,
	ClusterScoped:    true,
	Untyped:          true,
	Status:           true,
	Content:          Object{},
	Applied:          Object{},
	Changes: []Edit{
		Set("spec/owner", "me"), Set("spec/owner", "you"), Remove("spec/owner"), Remove("spec"),
		Set("spec/members", []any{"a"}), Set("spec/members", []any{"b", "a"}),
	},
	Faults: []Edit{Set("spec/members", []any{"a", "a"}), Set("spec/owner", int64(1))},
	StatusChanges: []Edit{
		Set("status/members", int64(1)), Set("status/members", int64(2)), Remove("status"), Set("status/unknown", "field"),
	},
	StatusFaults: []Edit{Set("status/members", "many")},
}

// catalog has the kinds of the sequences.
var catalog = []*Kind{
	configMaps, secrets, services, serviceAccounts, pods, deployments, statefulSets, jobs, clusterRoles, gadgets, gadgets,
	gadgets, gizmos, gizmos, realms, namespaces,
}
