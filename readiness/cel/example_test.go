// SPDX-License-Identifier: Apache-2.0

package cel_test

import (
	"fmt"

	"trueup.dev/readiness/cel"
)

func ExampleRule() {
	rule := &cel.Rule{
		Ready:   `object.status.phase == "Done"`,
		Message: `"phase is " + object.status.phase`,
	}
	fmt.Println(rule.Of(backup("Running")))
	fmt.Println(rule.Of(backup("Done")))
	// Output:
	// Progressing: phase is Running
	// Ready
}
