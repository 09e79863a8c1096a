// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
)

// same compares values semantically: quantities by amount, times by instant, and nil like empty. DeepEqual is faster
// and usually sufficient.
func same(a, b any) bool {
	return reflect.DeepEqual(a, b) || equality.Semantic.DeepEqual(a, b)
}
