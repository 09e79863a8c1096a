// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resets returns the paths of the fields that a write to a subresource, or to the object itself for "", does not
// change. Its manager does not own them.
func (k *Kind) Resets(subresource string) [][]string {
	switch {
	case !k.Status:
		return nil
	case subresource == "":
		return [][]string{{"status"}}
	case subresource != "status":
		return nil
	case k.Custom || builtins()[k.GroupVersionKind].keepsMetadata:
		return [][]string{{"metadata"}, {"spec"}}
	}
	return append([][]string{{"spec"}}, statusResets[k.GroupKind()]...)
}

// statusResets is the metadata that a write to the status cannot change, for kinds that accept other metadata.
var statusResets = map[schema.GroupKind][][]string{
	{Group: "apps", Kind: "Deployment"}: {{"metadata", "labels"}},
	{Kind: "Pod"}:                       {{"metadata", "deletionTimestamp"}, {"metadata", "ownerReferences"}},
}

// Schema returns the structural schema of a custom resource, which must not be changed. Nil if it has none.
func (k *Kind) Schema() *structuralschema.Structural {
	if r, ok := k.rules.(*schemaRules); ok {
		return r.schema.structural
	}
	return nil
}
