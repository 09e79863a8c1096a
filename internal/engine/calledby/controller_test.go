// SPDX-License-Identifier: Apache-2.0

package calledby

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/controller"
)

func TestController(t *testing.T) {
	ctx := Controller()
	if controller.ReconcileIDFromContext(ctx) == "" {
		t.Error("the context has no reconcile ID")
	}
	if ctx != Controller() {
		t.Error("Controller returns a different context each time")
	}
	if err := ctx.Err(); err != nil {
		t.Error(err)
	}
}
