// SPDX-License-Identifier: Apache-2.0

package resource

// PatchOp is an operation of a JSON patch.
type PatchOp string

// The operations of a JSON patch.
const (
	PatchOpAdd     PatchOp = "add"
	PatchOpRemove  PatchOp = "remove"
	PatchOpReplace PatchOp = "replace"
	PatchOpMove    PatchOp = "move"
	PatchOpCopy    PatchOp = "copy"
	PatchOpTest    PatchOp = "test"
)

// PatchRequest describes a change of an object as a JSON patch. To change an object, use [TypedStore.Patch].
type PatchRequest struct {
	// Operations are applied in order.
	Operations []PatchOperation
}

// PatchOperation is one operation of a [PatchRequest].
type PatchOperation struct {
	// Path is the JSON pointer to the value, for example /metadata/finalizers.
	Path string `json:"path"`
	// Operation is what happens to the value.
	Operation PatchOp `json:"op"`
	// Value is the new value, if the operation has one.
	Value any `json:"value,omitempty"`
}
