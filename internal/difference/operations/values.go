// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"encoding/json"

	"gomodules.xyz/jsonpatch/v2"
)

// WithPlainNumbers returns the operations with each json.Number as the float64 that encoding/json decodes it to by
// default, if that has the same text. Other numbers are unchanged: a float64 cannot represent every int64. The values
// must be decoded JSON; they are changed in place.
func WithPlainNumbers(patch []jsonpatch.Operation) []jsonpatch.Operation {
	for i := range patch {
		patch[i].Value = plainNumbers(patch[i].Value)
	}
	return patch
}

func plainNumbers(value any) any {
	switch value := value.(type) {
	case json.Number:
		return plainNumber(value)
	case map[string]any:
		for key, entry := range value {
			value[key] = plainNumbers(entry)
		}
	case []any:
		for i, item := range value {
			value[i] = plainNumbers(item)
		}
	}
	return value
}

func plainNumber(number json.Number) any {
	float, err := number.Float64()
	if err != nil {
		return number
	}
	if text, err := json.Marshal(float); err != nil || string(text) != number.String() {
		return number
	}
	return float
}
