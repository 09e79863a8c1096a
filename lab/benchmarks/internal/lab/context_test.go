// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/controller"
)

func TestTrial_CalledByController(t *testing.T) {
	trial := Trial{controller: &running{Wiring: &Wiring{log: logr.Discard()}}}
	ctx, stop, err := trial.calledByController(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if controller.ReconcileIDFromContext(ctx) == "" {
		t.Error("the context has no id of a reconcile")
	}
	if _, err := logr.FromContext(ctx); err != nil {
		t.Error("the context has no logger")
	}
	if err := ctx.Err(); err != nil {
		t.Errorf("the context has ended: %v", err)
	}
	stop()
	<-ctx.Done()
}
