// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// witnesses are sequences that show that each known difference exists.
var witnesses = map[string]Sequence{
	"managed-fields": {{Verb: Create, Kind: configMaps, Name: "a"}},
	"typed-content": {
		{
			Verb: Create, Kind: gadgets, Name: "a", Form: Unstructured,
			Edits: []Edit{Set("spec/parts", []any{}), Set("spec/memory", "1024Mi")},
		},
		{Verb: Get, Kind: gadgets, Name: "a", Form: Unstructured},
	},
	"pod-update-diff": {
		{Verb: Create, Kind: pods, Name: "a"},
		{
			Verb: Update, Kind: pods, Name: "a", Base: Last, Edits: []Edit{Set("spec/terminationGracePeriodSeconds", int64(60))},
		},
	},
	"node-ports-again": {
		{Verb: Create, Kind: services, Name: "a", Edits: []Edit{Set("spec/type", "NodePort")}},
		{Verb: Update, Kind: services, Name: "a", Base: Last, Edits: []Edit{Set("spec/type", "ClusterIP")}},
		{Verb: Update, Kind: services, Name: "a", Base: Last, Edits: []Edit{Set("spec/type", "NodePort")}},
	},
	"duplicate-node-ports": {
		{Verb: Create, Kind: services, Name: "a", Edits: []Edit{Set("spec/type", "NodePort")}},
		{
			Verb: Patch, Kind: services, Name: "a", Patch: MergePatch,
			Edits: []Edit{Set("spec/ports", []any{Object{"port": int64(80)}, Object{"port": int64(81)}})},
		},
	},
	"apply-types": {
		{Verb: Apply, Kind: gadgets, Name: "a", Owner: "alice", Edits: []Edit{Set("spec/one", "x"), Set("spec/two", "x")}},
	},
	"nameless-service": {{Verb: Create, Kind: services, Edits: []Edit{Set("metadata/name", "")}}},
	"values-in-errors": {
		{Verb: Create, Kind: jobs, Name: "a"},
		{Verb: Update, Kind: jobs, Name: "a"},
	},
	"metadata-deletion": {
		{Verb: Create, Kind: gizmos, Name: "a", Edits: []Edit{Set("metadata/finalizers", []any{"example.com/one"})}},
		{Verb: Delete, Kind: gizmos, Name: "a", Form: Metadata},
	},
}

// Each known difference exists, and its witness shows no other difference.
func TestDifferences(t *testing.T) {
	known := KnownDifferences()
	names := slices.Sorted(maps.Keys(known.Used()))
	if diff := cmp.Diff(names, slices.Sorted(maps.Keys(witnesses))); diff != "" {
		t.Fatalf("not every known difference has a witness (-known +witnesses):\n%s", diff)
	}
	real, ours := newRealServer(t), newOurs(t)
	for name, witness := range witnesses {
		transcript, err := real.run(t.Context(), witness)
		if err != nil {
			t.Fatal(err)
		}
		other, err := ours.run(t.Context(), transcript.Namespace, witness)
		if err != nil {
			t.Fatal(err)
		}
		if found := Compare(transcript, other, known.Without(name)); len(found) == 0 {
			t.Errorf("%s: the difference no longer exists: remove the rule", name)
		}
		for _, d := range Compare(transcript, other, known) {
			t.Errorf("%s: operation %d: unknown difference: %s", name, d.Step+1, d)
		}
	}
	for name, used := range known.Used() {
		if used == 0 {
			t.Errorf("%s: the rule was never used", name)
		}
	}
}

// The documentation lists exactly the known differences.
func TestDifferencesAreDocumented(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, line := range regexp.MustCompile(`(?m)^//   - ([a-z-]+): `).FindAllSubmatch(text, -1) {
		documented = append(documented, string(line[1]))
	}
	slices.Sort(documented)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(KnownDifferences().Used())), documented); diff != "" {
		t.Errorf("doc.go does not list the known differences (-known +documented):\n%s", diff)
	}
}
