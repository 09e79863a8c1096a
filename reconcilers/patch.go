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

// NewPatch returns the patch that turns base into update.
func NewPatch(base, update client.Object) (*Patch, error) {
	operations, err := jsonPatch(base, update)
	if err != nil {
		return nil, err
	}
	return &Patch{generation: base.GetGeneration(), operations: operations}, nil
}

// Apply changes rebase in place. It returns [PatchGenerationMismatch] when rebase is not of the generation that the
// patch was made from. When the patched document does not fit the Go type, rebase is left with the fields that could be
// read before the first that could not.
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

// replaceWith makes obj what the document says, and nothing else: reading into the old value would keep the fields that
// the document does not have.
func replaceWith(document []byte, obj client.Object) error {
	reflect.ValueOf(obj).Elem().SetZero()
	return json.Unmarshal(document, obj)
}
