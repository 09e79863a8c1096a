// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"bytes"
	"encoding/json"

	"gomodules.xyz/jsonpatch/v2"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"trueup.dev/internal/operations"
)

// comparablePatch returns the operations of a response in a form to compare: sorted by path, as far as their order has
// no effect, and with values as decoded from JSON. The order of operations that jsonpatch computes is random, and the
// Go types of their values depend on its version.
func comparablePatch(patch []jsonpatch.Operation, request admission.Request) []jsonpatch.Operation {
	raw := request.Object.Raw
	if len(raw) == 0 {
		raw = request.OldObject.Raw
	}
	document, err := decoded(raw)
	if err != nil {
		document = nil // all numbers in paths count as indexes of lists then
	}
	ordered := make([]jsonpatch.Operation, 0, len(patch))
	for _, operation := range operations.InOrder(patch, document) {
		if data, err := json.Marshal(operation.Value); err == nil {
			if value, err := decoded(data); err == nil {
				operation.Value = value
			}
		}
		ordered = append(ordered, operation)
	}
	return operations.WithPlainNumbers(ordered)
}

func decoded(data []byte) (value any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	err = decoder.Decode(&value)
	return value, err
}
