// SPDX-License-Identifier: Apache-2.0

// Package validation defines the interfaces that trueup uses to validate values and to set defaults: [Validator] and
// [Defaulter].
//
// # Validation of reconcilers
//
// Every reconciler of trueup is a [Validator]. It is validated when it is set up with a manager, so a mistake stops the
// program at its start instead of failing the first request. Validate reports all mistakes of a reconciler at once, by
// field name. Your own reconcilers are validated too if they have a Validate method.
//
// Set-up first validates all reconcilers of trueup in the tree and lists all their mistakes. Then it sets up the tree.
// After that it validates your own reconcilers, including those that embed one of trueup, because Validate may require
// what SetupWithManager prepared. Reconcilers nested in your own reconciler are validated when your SetupWithManager
// sets them up. Below an OverrideSetup and in a webhook no set-up runs, so your own reconcilers are not validated
// there.
//
// Most reconcilers nest others. Validate validates nested reconcilers only if the context requests it. This lets a test
// validate a whole tree without a manager, including your own reconcilers:
//
//	ctx = validation.WithRecursive(ctx)
//	err := rootReconciler.Validate(ctx)
//
// A reconciler with nested reconcilers implements that in its own Validate:
//
//	if validation.IsRecursive(ctx) {
//		if v, ok := r.Reconciler.(validation.Validator); ok {
//			errs = append(errs, v.Validate(ctx))
//		}
//	}
//
// # Defaults of resources
//
// If a resource type implements [Defaulter], Default is called after the resource is read and before any reconciler
// runs.
package validation
