// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"encoding/json"
	"reflect"

	evanphx "github.com/evanphx/json-patch/v5"
	"gomodules.xyz/jsonpatch/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Patch is the difference between two versions of an object, as a JSON patch (RFC 6902).
type Patch struct {
	generation int64
	operations []byte
}

// NewPatch returns the patch that changes base to update.
func NewPatch(base, update client.Object) (*Patch, error) {
	operations, err := jsonPatch(base, update)
	if err != nil {
		return nil, err
	}
	return &Patch{generation: base.GetGeneration(), operations: operations}, nil
}

// Apply changes rebase in place. It returns [PatchGenerationMismatch] if the generation of rebase differs from the
// generation of the base of the patch. If the patched document cannot be decoded, rebase contains only the fields
// before the first error.
func (p *Patch) Apply(rebase client.Object) error {
	if rebase.GetGeneration() != p.generation {
		return PatchGenerationMismatch
	}
	return applyJSONPatch(p.operations, rebase)
}

func jsonPatch(base, update any) ([]byte, error) {
	baseBytes, err := json.Marshal(base)
	if err != nil {
		return nil, err
	}
	updateBytes, err := json.Marshal(update)
	if err != nil {
		return nil, err
	}
	operations, err := jsonpatch.CreatePatch(baseBytes, updateBytes)
	if err != nil {
		return nil, err
	}
	return json.Marshal(operations)
}

func applyJSONPatch(operations []byte, obj client.Object) error {
	patch, err := evanphx.DecodePatch(operations)
	if err != nil {
		return err
	}
	before, err := json.Marshal(obj)
	if err != nil {
		return err
	}
	after, err := patch.Apply(before)
	if err != nil {
		return err
	}
	return replaceWith(after, obj)
}

// replaceWith decodes the document into obj. It clears obj first, because decoding keeps fields that the document does
// not have.
func replaceWith(document []byte, obj client.Object) error {
	reflect.ValueOf(obj).Elem().SetZero()
	return json.Unmarshal(document, obj)
}
