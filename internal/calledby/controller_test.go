// SPDX-License-Identifier: Apache-2.0

package calledby

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/controller"
)

func TestController(t *testing.T) {
	ctx := Controller()
	if controller.ReconcileIDFromContext(ctx) == "" {
		t.Error("it has no id of a reconcile")
	}
	if ctx != Controller() {
		t.Error("it is another one each time")
	}
	if err := ctx.Err(); err != nil {
		t.Error(err)
	}
}
