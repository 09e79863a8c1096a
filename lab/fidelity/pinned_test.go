// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"testing"
)

// pinned are sequences for which our server once differed from a real one.
var pinned = map[string]Sequence{
	"an update takes an empty status away from who applied it": {
		{Verb: Create, Kind: gadgets, Name: "a"},
		{Verb: Apply, Kind: gadgets, Name: "a", Subresource: "status", Owner: "bob", Edits: []Edit{Set("status", Object{})}},
		{Verb: Update, Kind: gadgets, Name: "a", Subresource: "status", Base: Last},
	},
	"a status is applied to one that is empty": {
		{Verb: Create, Kind: gadgets, Name: "a"},
		{
			Verb: Patch, Kind: gadgets, Name: "a", Subresource: "status", Patch: MergePatch,
			Edits: []Edit{Remove("status/conditions")},
		},
		{
			Verb: Apply, Kind: gadgets, Name: "a", Subresource: "status", Owner: "alice",
			Edits: []Edit{Set("status/phase", "Ready")},
		},
	},
	"an immutable secret gets empty data": {
		{Verb: Create, Kind: secrets, Name: "a", Edits: []Edit{Remove("stringData"), Set("immutable", true)}},
		{
			Verb: Patch, Kind: secrets, Name: "a", Patch: MergePatch,
			Edits: []Edit{Set("type", "example.com/own"), Remove("data/a")},
		},
		{Verb: Patch, Kind: secrets, Name: "a", Patch: MergePatch, Edits: []Edit{Remove("data/a")}},
	},
	"an immutable secret gets empty data, by a strategic patch": {
		{Verb: Create, Kind: secrets, Name: "a", Edits: []Edit{Remove("stringData"), Set("immutable", true)}},
		{Verb: Patch, Kind: secrets, Name: "a", Patch: StrategicPatch, Edits: []Edit{Remove("data/a")}},
	},
	"an immutable config map gets empty data": {
		{Verb: Create, Kind: configMaps, Name: "a", Edits: []Edit{Remove("data"), Set("immutable", true)}},
		{Verb: Update, Kind: configMaps, Name: "a", Base: Last, Edits: []Edit{Set("data", Object{})}},
		{Verb: Update, Kind: configMaps, Name: "a", Base: Last, Form: Unstructured, Edits: []Edit{Set("data", Object{})}},
	},
	"an immutable config map gets empty binary data": {
		{Verb: Create, Kind: configMaps, Name: "a", Edits: []Edit{Remove("data"), Set("immutable", true)}},
		{Verb: Patch, Kind: configMaps, Name: "a", Patch: JSONPatch, Edits: []Edit{Set("binaryData", Object{})}},
	},
	"an immutable config map gets empty data applied": {
		{Verb: Create, Kind: configMaps, Name: "a", Edits: []Edit{Remove("data"), Set("immutable", true)}},
		{Verb: Apply, Kind: configMaps, Name: "a", Owner: "alice", Edits: []Edit{Set("data", Object{})}},
	},
	"empty data is stored as none": {
		{Verb: Create, Kind: configMaps, Name: "a", Edits: []Edit{Remove("data")}},
		{Verb: Update, Kind: configMaps, Name: "a", Base: Last, Form: Unstructured, Edits: []Edit{Set("data", Object{})}},
		{
			Verb: Patch, Kind: configMaps, Name: "a", Patch: MergePatch,
			Edits: []Edit{Set("immutable", true), Set("data", Object{})},
		},
		{Verb: Patch, Kind: configMaps, Name: "a", Patch: MergePatch, Edits: []Edit{Set("metadata/labels/app", "x")}},
	},
	"a headless service is updated without its address": {
		{Verb: Create, Kind: services, Name: "a", Edits: []Edit{Set("spec/clusterIP", "None")}},
		{Verb: Update, Kind: services, Name: "a"},
		{Verb: Update, Kind: services, Name: "a"},
	},
	"a headless service that selects nothing begins to": {
		{Verb: Create, Kind: services, Name: "a", Edits: []Edit{Set("spec/clusterIP", "None"), Remove("spec/selector")}},
		{Verb: Update, Kind: services, Name: "a"},
		{Verb: Update, Kind: services, Name: "a", Edits: []Edit{Remove("spec/selector")}},
		{Verb: Update, Kind: services, Name: "a", Edits: []Edit{Set("spec/ipFamilyPolicy", "SingleStack")}},
		{Verb: Update, Kind: services, Name: "a"},
	},
	"a headless service begins to select nothing": {
		{Verb: Create, Kind: services, Name: "a", Edits: []Edit{Set("spec/clusterIP", "None")}},
		{Verb: Update, Kind: services, Name: "a", Edits: []Edit{Remove("spec/selector")}},
		{
			Verb: Patch, Kind: services, Name: "a", Patch: MergePatch,
			Edits: []Edit{Set("spec/ipFamilyPolicy", "PreferDualStack")},
		},
	},
	"a dry run shows node ports that are not allocated": {
		{Verb: Create, Kind: services, Name: "a"},
		{Verb: Update, Kind: services, Name: "a", Base: Last, Edits: []Edit{Set("spec/type", "LoadBalancer")}, DryRun: true},
		{Verb: Update, Kind: services, Name: "a", Base: Last, Edits: []Edit{Set("spec/type", "LoadBalancer")}},
		{
			Verb: Update, Kind: services, Name: "a", Base: Last, Edits: []Edit{Set("spec/externalTrafficPolicy", "Local")},
			DryRun: true,
		},
		{Verb: Create, Kind: services, Name: "b", Edits: []Edit{Set("spec/type", "NodePort")}, DryRun: true},
		{Verb: Create, Kind: services, Name: "b", DryRun: true, Edits: []Edit{
			Set("spec/type", "NodePort"), Set("spec/ports", []any{
				Object{"name": "http", "port": int64(80)}, Object{"name": "https", "port": int64(443)},
			}),
		}},
	},
	"ports of two protocols share a node port": {
		{Verb: Create, Kind: services, Name: "a", Edits: []Edit{Set("spec/type", "NodePort"), twoProtocols}, DryRun: true},
		{Verb: Create, Kind: services, Name: "a", Edits: []Edit{Set("spec/type", "NodePort"), twoProtocols}},
		{Verb: Create, Kind: services, Name: "b", Edits: []Edit{twoProtocols}},
		{Verb: Update, Kind: services, Name: "b", Base: Last, Edits: []Edit{Set("spec/type", "NodePort")}, DryRun: true},
		{Verb: Update, Kind: services, Name: "b", Base: Last, Edits: []Edit{Set("spec/type", "NodePort")}},
	},
	"a stateful set with claims is scaled": {
		{Verb: Create, Kind: statefulSets, Name: "a", Edits: []Edit{claimTemplates}},
		{Verb: Update, Kind: statefulSets, Name: "a", Subresource: "scale", Edits: []Edit{Set("spec/replicas", int64(7))}},
	},
	"the last annotation is not applied any more": {
		{Verb: Apply, Kind: gizmos, Name: "a", Owner: "bob", Edits: []Edit{Set("metadata/annotations/note", "one")}},
		{Verb: Apply, Kind: gizmos, Name: "a", Owner: "bob"},
		{Verb: Patch, Kind: gizmos, Name: "a", Patch: MergePatch},
		{Verb: Patch, Kind: gizmos, Name: "a", Patch: MergePatch},
		{Verb: Apply, Kind: gizmos, Name: "a", Owner: "bob"},
	},
	"the last label of a kind with a Go type is not applied any more": {
		{Verb: Apply, Kind: gadgets, Name: "a", Owner: "bob", Edits: []Edit{Set("metadata/labels/app", "x")}},
		{Verb: Apply, Kind: gadgets, Name: "a", Owner: "bob"},
		{Verb: Apply, Kind: gadgets, Name: "a", Owner: "bob"},
		{Verb: Apply, Kind: gadgets, Name: "a", Owner: "bob"},
	},
	"the last annotation is not applied any more, and others have had some": {
		{Verb: Create, Kind: realms, Name: "a", Edits: []Edit{Set("metadata/annotations/note", "two")}},
		{
			Verb: Apply, Kind: realms, Name: "a", Owner: "bob", Force: true,
			Edits: []Edit{Set("metadata/annotations/note", "one")},
		},
		{Verb: Apply, Kind: realms, Name: "a", Owner: "bob"},
		{Verb: Update, Kind: realms, Name: "a", Base: Last},
		{Verb: Update, Kind: realms, Name: "a", Base: Last},
	},
	"the last annotation of a kind with a Go type is not applied any more, and others have had some": {
		{Verb: Create, Kind: gadgets, Name: "a", Edits: []Edit{Set("metadata/annotations/note", "two")}},
		{
			Verb: Apply, Kind: gadgets, Name: "a", Owner: "bob", Force: true,
			Edits: []Edit{Set("metadata/annotations/note", "one")},
		},
		{Verb: Apply, Kind: gadgets, Name: "a", Owner: "bob"},
		{Verb: Update, Kind: gadgets, Name: "a", Base: Last},
		{Verb: Update, Kind: gadgets, Name: "a", Base: Last},
	},
	"an immutable secret with managed fields gets empty data": {
		{Verb: Apply, Kind: secrets, Name: "a", Owner: "alice"},
		{Verb: Patch, Kind: secrets, Name: "a", Patch: StrategicPatch, Edits: []Edit{Set("immutable", true)}},
		{Verb: Patch, Kind: secrets, Name: "a", Patch: MergePatch},
		{Verb: Patch, Kind: secrets, Name: "a", Patch: StrategicPatch, Edits: []Edit{Remove("data/a")}},
	},
	"a status and what comes with it are wrong": {
		{Verb: Create, Kind: statefulSets, Name: "a"},
		{Verb: Update, Kind: statefulSets, Name: "a", Subresource: "status", Base: Live, Edits: []Edit{
			Set("metadata/finalizers", []any{"unqualified"}), Set("status/readyReplicas", int64(9)),
		}},
	},
	"a service that has had an address applied is applied to": {
		{Verb: Apply, Kind: services, Name: "a", Owner: "bob"},
		{
			Verb: Apply, Kind: services, Name: "a", Owner: "alice",
			Edits: []Edit{Set("spec/ports/[port=80]/targetPort", int64(8080))},
		},
		{Verb: Apply, Kind: services, Name: "a", Owner: "alice", Edits: []Edit{
			Set("spec/ports", []any{
				Object{"name": "http", "port": int64(80)}, Object{"name": "dns", "port": int64(53), "protocol": "UDP"},
			}),
		}},
		{Verb: Apply, Kind: services, Name: "a", Owner: "bob"},
	},
	"a stateful set is scaled to the number it has, and written again": {
		{Verb: Create, Kind: statefulSets, Name: "a"},
		{Verb: Patch, Kind: statefulSets, Name: "a", Subresource: "scale", Patch: MergePatch},
		{Verb: Patch, Kind: statefulSets, Name: "a", Patch: StrategicPatch},
		{Verb: Patch, Kind: statefulSets, Name: "a", Patch: StrategicPatch},
		{Verb: Patch, Kind: statefulSets, Name: "a", Subresource: "scale", Patch: MergePatch},
		{Verb: Apply, Kind: statefulSets, Name: "a", Owner: "alice"},
	},
	"a realm in no namespace is applied": {
		{Verb: Apply, Kind: realms, Name: "a", Owner: "alice", Edits: []Edit{Set("metadata/namespace", "")}},
	},
	"no owners are applied to what goes with that": {
		{
			Verb: Apply, Kind: gadgets, Name: "a", Owner: "alice",
			Edits: []Edit{Set("metadata/finalizers", []any{"example.com/one"})},
		},
		{
			Verb: Apply, Kind: gizmos, Name: "a", Owner: "alice",
			Edits: []Edit{Set("metadata/finalizers", []any{"example.com/one"})},
		},
		{Verb: Delete, Kind: gadgets, Name: "a"},
		{Verb: Delete, Kind: gizmos, Name: "a"},
		{Verb: Apply, Kind: gadgets, Name: "a", Owner: "alice", Edits: []Edit{Set("metadata/ownerReferences", []any{})}},
		{
			Verb: Apply, Kind: gizmos, Name: "a", Owner: "alice",
			Edits: []Edit{Set("metadata/ownerReferences", []any{}), Set("metadata/labels", Object{})},
		},
	},
	"no owners are applied to what had none applied": {
		{Verb: Create, Kind: gizmos, Name: "a"},
		{Verb: Apply, Kind: gizmos, Name: "a", Owner: "bob"},
		{Verb: Apply, Kind: gizmos, Name: "a", Owner: "bob", Edits: []Edit{Set("metadata/ownerReferences", []any{})}},
	},
	"no owners are applied to what is deleted twice": {
		{Verb: Apply, Kind: gadgets, Name: "a", Owner: "bob"},
		{Verb: Delete, Kind: gadgets, Name: "a", Propagation: "Orphan"},
		{Verb: Apply, Kind: gadgets, Name: "a", Owner: "bob", Edits: []Edit{Set("metadata/ownerReferences", []any{})}},
		{Verb: Delete, Kind: gadgets, Name: "a", Propagation: "Orphan"},
		{Verb: Delete, Kind: gadgets, Name: "a", Propagation: "Orphan"},
	},
	"ports are replaced, and come back": {
		{Verb: Create, Kind: services, Name: "a", Edits: []Edit{Set("spec/ports/[port=80]/name", "http")}},
		{Verb: Patch, Kind: services, Name: "a", Patch: MergePatch, Edits: []Edit{Set("spec/type", "NodePort")}},
		{
			Verb: Update, Kind: services, Name: "a", Base: Last,
			Edits: []Edit{Set("spec/ports", []any{Object{"port": int64(81)}})},
		},
		{
			Verb: Update, Kind: services, Name: "a", Base: Last,
			Edits: []Edit{Set("spec/ports", []any{Object{"name": "http", "port": int64(80)}})},
		},
	},
	"no owners are applied again": {
		{Verb: Apply, Kind: gizmos, Name: "a", Owner: "alice"},
		{Verb: Apply, Kind: gizmos, Name: "a", Owner: "alice", Edits: []Edit{Set("metadata/ownerReferences", []any{})}},
		{Verb: Apply, Kind: gizmos, Name: "a", Owner: "alice", Edits: []Edit{Set("metadata/ownerReferences", []any{})}},
		{Verb: Apply, Kind: gizmos, Name: "a", Owner: "alice", Edits: []Edit{Set("metadata/finalizers", []any{})}},
		{Verb: Apply, Kind: gizmos, Name: "a", Owner: "alice"},
	},
	"no owners are applied": {
		{Verb: Apply, Kind: gadgets, Name: "a", Owner: "bob", Edits: []Edit{Set("metadata/ownerReferences", []any{})}},
		{Verb: Update, Kind: gadgets, Name: "a", Base: Last},
		{
			Verb: Apply, Kind: gadgets, Name: "a", Owner: "alice",
			Edits: []Edit{Set("metadata/ownerReferences", []any{}), Set("metadata/labels", Object{})},
		},
		{Verb: Update, Kind: gadgets, Name: "a", Subresource: "status", Base: Last},
		{Verb: Update, Kind: gadgets, Name: "a", Base: Last},
	},
	"a list that others have added to is not applied any more": {
		{Verb: Apply, Kind: gadgets, Name: "a", Owner: "alice", Edits: []Edit{Set("spec/parts/[name=two]/weight", int64(7))}},
		{Verb: Update, Kind: gadgets, Name: "a", Base: Last, Edits: []Edit{Set("spec/parts", []any{Object{"name": "two"}})}},
		{Verb: Apply, Kind: gadgets, Name: "a", Owner: "alice"},
	},
	"a list that others have added to is not applied any more, and more is wrong": {
		{Verb: Apply, Kind: gadgets, Name: "a", Owner: "alice", Edits: []Edit{Set("spec/parts/[name=two]/weight", int64(7))}},
		{Verb: Update, Kind: gadgets, Name: "a", Base: Last, Edits: []Edit{Set("spec/parts", []any{Object{"name": "two"}})}},
		{Verb: Apply, Kind: gadgets, Name: "a", Owner: "alice", Edits: []Edit{Set("spec/replicas", int64(90))}},
	},
	"a number of replicas changes hands": {
		{Verb: Create, Kind: gadgets, Name: "a", Edits: []Edit{Set("spec/replicas", int64(2))}},
		{
			Verb: Patch, Kind: gadgets, Name: "a", Subresource: "scale", Patch: MergePatch,
			Edits: []Edit{Set("spec/replicas", int64(2))},
		},
		{
			Verb: Patch, Kind: gadgets, Name: "a", Subresource: "scale", Patch: MergePatch,
			Edits: []Edit{Set("spec/replicas", int64(2))},
		},
		{
			Verb: Update, Kind: gadgets, Name: "a", Subresource: "scale", Edits: []Edit{Set("spec/replicas", int64(2))},
			Owner: "bob",
		},
	},
	"claims in the templates of a stateful set have a kind": {
		{Verb: Create, Kind: statefulSets, Name: "a", Form: Unstructured, Edits: []Edit{claimTemplates}},
		{Verb: Get, Kind: statefulSets, Name: "a"},
		{
			Verb: Patch, Kind: statefulSets, Name: "a", Form: Unstructured, Patch: JSONPatch,
			Tests: []Edit{
				Set("spec/volumeClaimTemplates/[0]/kind", "PersistentVolumeClaim"),
			}, Edits: []Edit{Set("metadata/labels/app", "x")},
		},
		{
			Verb: Update, Kind: statefulSets, Name: "a", Form: Unstructured, Base: Live,
			Edits: []Edit{Set("spec/replicas", int64(2))},
		},
		{Verb: Update, Kind: statefulSets, Name: "a", Base: Live},
		{
			Verb: Apply, Kind: statefulSets, Name: "a", Owner: "alice", Force: true,
			Edits: []Edit{Set("spec/replicas", int64(3))},
		},
	},
}

var twoProtocols = Set("spec/ports", []any{
	Object{"name": "udp", "port": int64(53), "protocol": "UDP"}, Object{"name": "tcp", "port": int64(53)},
})

var claimTemplates = Set("spec/volumeClaimTemplates", []any{Object{"metadata": Object{"name": "data"}, "spec": Object{
	"accessModes": []any{"ReadWriteOnce"}, "resources": Object{"requests": Object{"storage": "1Gi"}},
}}})

// Fixed differences stay fixed.
func TestPinned(t *testing.T) {
	explorer := &Explorer{Real: newRealServer(t).run, Ours: newOurs(t).run, Known: KnownDifferences()}
	for name, sequence := range pinned {
		finding, err := explorer.compare(t.Context(), sequence)
		if err != nil {
			t.Fatal(err)
		}
		if finding != nil { // an apply may create a version only because a second has passed, on one of the two servers
			if finding, err = explorer.compare(t.Context(), sequence); err != nil {
				t.Fatal(err)
			}
		}
		if finding == nil {
			continue
		}
		for _, d := range finding.Divergences {
			t.Errorf("%s: operation %d: %s", name, d.Step+1, d)
		}
	}
}
