// SPDX-License-Identifier: Apache-2.0

package duck

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// boundPatch returns a patch with the data that the given patch has for the object. A patch must be computed for the
// duck typed object it was made for, because its data may depend on the Go type, as that of a strategic merge patch
// does.
func boundPatch(patch client.Patch, obj client.Object) (client.Patch, error) {
	data, err := patch.Data(obj)
	if err != nil {
		return nil, err
	}
	return client.RawPatch(patch.Type(), data), nil
}
