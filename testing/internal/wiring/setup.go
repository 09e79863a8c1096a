// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
)

// SetUp calls the SetupWithManager method of a reconciler, which may have a context parameter or not.
func SetUp(ctx context.Context, mgr ctrl.Manager, reconciler any) error {
	switch reconciler := reconciler.(type) {
	case interface {
		SetupWithManager(ctx context.Context, mgr ctrl.Manager) error
	}:
		return reconciler.SetupWithManager(ctx, mgr)
	case interface {
		SetupWithManager(mgr ctrl.Manager) error
	}:
		return reconciler.SetupWithManager(mgr)
	default:
		return fmt.Errorf(
			"%T must have a method SetupWithManager(context.Context, ctrl.Manager) error "+
				"or SetupWithManager(ctrl.Manager) error",
			reconciler,
		)
	}
}
