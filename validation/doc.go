// SPDX-License-Identifier: Apache-2.0

// Package validation holds the two small interfaces through which trueup checks
// and completes what it is given: [Validator] and [Defaulter].
//
// # Reconcilers check themselves
//
// Every reconciler of trueup is a [Validator]. It is validated while being set
// up with a manager, so a mistake stops the program at its start instead of
// showing up in the first request. Validate reports all mistakes of a reconciler
// at once, by field name. Give a reconciler of your own a Validate method and it
// takes part.
//
// Set-up validates the reconcilers of trueup first, those of the whole tree, and
// lists all their mistakes. Then it sets the tree up. Reconcilers of your own,
// those that embed one of trueup included, are validated after that: Validate may
// ask for what SetupWithManager has prepared. What is nested in a reconciler of
// your own validates itself when your SetupWithManager sets it up. Below an
// OverrideSetup and in a webhook nothing is set up, so reconcilers of your own
// are not validated there.
//
// Most reconcilers nest others. Validate looks at the nested ones only when the
// context asks for it. A test can thereby check a whole tree, without a manager,
// with all reconcilers of your own:
//
//	ctx = validation.WithRecursive(ctx)
//	err := rootReconciler.Validate(ctx)
//
// A reconciler with nested reconcilers honours that in its own Validate:
//
//	if validation.IsRecursive(ctx) {
//		if v, ok := r.Reconciler.(validation.Validator); ok {
//			errs = append(errs, v.Validate(ctx))
//		}
//	}
//
// # Resources complete themselves
//
// A resource type that is a [Defaulter] has its defaults filled in after it was
// read and before any reconciler sees it.
package validation
