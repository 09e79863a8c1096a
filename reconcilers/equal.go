// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
)

// same compares by what values mean: quantities by their amount, times by their instant, and nothing is the same as
// empty. Most of what is compared is the same to the letter, which is found out faster.
func same(a, b any) bool {
	return reflect.DeepEqual(a, b) || equality.Semantic.DeepEqual(a, b)
}
