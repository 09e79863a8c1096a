// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// IgnoreAllUnexported is a cmp option that ignores the unexported fields of all structs and their contents. Without it,
// cmp panics on types such as resource.Quantity.
var IgnoreAllUnexported = cmp.FilterPath(func(path cmp.Path) bool {
	field, ok := path.Last().(cmp.StructField)
	if !ok {
		return false
	}
	first, _ := utf8.DecodeRuneInString(field.Name())
	return !unicode.IsUpper(first)
}, cmp.Ignore())
