// SPDX-License-Identifier: Apache-2.0

package operator

import "trueup.dev/resource"

// FinalizerSupplier names the finalizer by which objects of a kind are kept: a qualified name such as
// example.com/myapp-widgets. It must not depend on the version of the kind, nor on anything else that changes.
type FinalizerSupplier func(schema resource.Schema) string
