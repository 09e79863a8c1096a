// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"errors"
	"fmt"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge/internal/phrase"
)

// errorsOracle checks how reconciles end: they must not panic, nor give up on a temporary error.
type errorsOracle struct{ evidence }

func (o *errorsOracle) finished(a *activity) {
	name := phrase.Name(a.NamespacedName)
	switch {
	case a.panicked != nil:
		o.violate(Violation{
			Oracle: OracleErrors, Cause: CausePanic, About: name,
			Message: fmt.Sprintf("the reconcile of %s panics: %v", name, a.panicked), Details: userFrames(a.stack),
		})
	case isTerminal(a.err) && isTemporary(a.err):
		o.violate(Violation{
			Oracle: OracleErrors, Cause: CauseTerminalError, About: name,
			Message: fmt.Sprintf("the reconcile of %s returns a terminal error for a temporary one: %v", name, a.err),
		})
	}
}

func isTerminal(err error) bool { return errors.Is(err, reconcile.TerminalError(nil)) }

// isTemporary reports whether a retry may succeed after an error.
func isTemporary(err error) bool {
	return apierrs.IsConflict(err) || apierrs.IsTimeout(err) || apierrs.IsServerTimeout(err) ||
		apierrs.IsTooManyRequests(err) || apierrs.IsInternalError(err) ||
		errors.Is(err, context.DeadlineExceeded)
}
