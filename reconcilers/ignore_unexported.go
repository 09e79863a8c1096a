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
	// Only a cmp.StructField has both methods. With an assertion to that type, or with Path.Last, the linker would keep
	// all methods of all types of a program, because the names of these steps are found by reflection.
	field, ok := path[len(path)-1].(interface {
		Name() string
		Index() int
	})
	if !ok {
		return false
	}
	first, _ := utf8.DecodeRuneInString(field.Name())
	return !unicode.IsUpper(first)
}, cmp.Ignore())
