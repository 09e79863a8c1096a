// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"bytes"
	"encoding/json"

	"gomodules.xyz/jsonpatch/v2"
)

// Comparable returns the operations of a patch in a form that can be compared: sorted by path, as far as their order
// has no effect, and with values as decoded from JSON. Document is the JSON of the patched object. If it is empty or
// invalid, all numbers in paths count as indexes of lists.
func Comparable(patch []jsonpatch.Operation, document []byte) []jsonpatch.Operation {
	content, err := decoded(document)
	if err != nil {
		content = nil
	}
	ordered := make([]jsonpatch.Operation, 0, len(patch))
	for _, operation := range InOrder(patch, content) {
		if data, err := json.Marshal(operation.Value); err == nil {
			if value, err := decoded(data); err == nil {
				operation.Value = value
			}
		}
		ordered = append(ordered, operation)
	}
	return WithPlainNumbers(ordered)
}

func decoded(data []byte) (value any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	err = decoder.Decode(&value)
	return value, err
}
