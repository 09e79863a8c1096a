// SPDX-License-Identifier: Apache-2.0

package fidelity_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"trueup.dev/lab/fidelity"
)

// A sequence is readable, and each kind has changes of its own.
func ExampleSequence() {
	kind := &fidelity.Kind{
		GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
		Content:          fidelity.Object{"data": fidelity.Object{"a": "1"}},
	}
	sequence := fidelity.Sequence{
		{Verb: fidelity.Create, Kind: kind, Name: "a"},
		{
			Verb: fidelity.Patch, Patch: fidelity.MergePatch, Kind: kind, Name: "a",
			Edits: []fidelity.Edit{fidelity.Set("data/a", "2"), fidelity.Remove("data/b")},
		},
		{Verb: fidelity.Update, Kind: kind, Name: "a", Base: fidelity.First, Form: fidelity.Unstructured},
		{Verb: fidelity.Delete, Kind: kind, Name: "a", UID: string(fidelity.TokenUID), Propagation: "Foreground"},
	}
	for _, operation := range sequence {
		fmt.Println(operation)
	}
	// Output:
	// create ConfigMap/a
	// patch (merge) ConfigMap/a: [data/a="2" -data/b]
	// update ConfigMap/a: unstructured, first seen
	// delete ConfigMap/a: if uid $uid, Foreground
}

// A generator returns the same sequence for the same seed.
func ExampleGenerator_Sequence() {
	generator := fidelity.Generator{Kinds: []*fidelity.Kind{{
		GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
		Content:          fidelity.Object{"data": fidelity.Object{"a": "1"}},
		Changes:          []fidelity.Edit{fidelity.Set("data/a", "2")},
	}}}
	sequence := generator.Sequence(42)
	fmt.Println(len(sequence), "operations:", fmt.Sprint(sequence) == fmt.Sprint(generator.Sequence(42)))
	// Output: 20 operations: true
}
