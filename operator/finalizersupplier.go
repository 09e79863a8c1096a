// SPDX-License-Identifier: Apache-2.0

package operator

import "trueup.dev/resource"

// FinalizerSupplier returns the name of the finalizer for a kind: a qualified name such as example.com/myapp-widgets.
// For custom resources, a name without a domain is allowed. The name must not depend on the version of the kind, nor on
// anything else that changes.
type FinalizerSupplier func(schema resource.Schema) string
