// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"trueup.dev/internal/defaults"
)

// withDefaults returns current, which is about to be written, with what the API server will fill in, and reports whether all of that is known. An object
// without a UID does not come from an API server: nothing is known of where it is stored, a fake for example. It changes neither of the objects.
func (r *UpdatingObjectManager[T]) withDefaults(_ writer, current, actual T) (filled T, known bool) {
	if actual.GetUID() == "" {
		return current, false
	}
	filled = r.copyToCompare(current)
	if !defaults.Update(filled, actual) {
		return current, false
	}
	defaults.KeepUnset(filled, current, actual)
	return filled, true
}
