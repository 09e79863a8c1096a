// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/finding"
	"trueup.dev/converge/internal/phrase"
	"trueup.dev/converge/internal/world"
)

// errorsOracle checks how reconciles end: they must not panic, nor give up on a temporary error.
type errorsOracle struct{ Evidence }

func (o *errorsOracle) Finished(a *world.Reconcile) {
	name := phrase.Name(a.NamespacedName)
	switch {
	case a.Panicked != nil:
		o.Violate(finding.Violation{
			Oracle: finding.OracleErrors, Cause: finding.CausePanic, About: name,
			Message: fmt.Sprintf("the reconcile of %s panics: %v", name, a.Panicked), Details: userFrames(a.Stack),
		})
	case world.IsTerminal(a.Err) && IsTemporary(a.Err):
		o.Violate(finding.Violation{
			Oracle: finding.OracleErrors, Cause: finding.CauseTerminalError, About: name,
			Message: fmt.Sprintf("the reconcile of %s returns a terminal error for a temporary one: %v", name, a.Err),
		})
	}
}

// IsTemporary reports whether a retry may succeed after an error.
func IsTemporary(err error) bool {
	return apierrs.IsConflict(err) || apierrs.IsTimeout(err) || apierrs.IsServerTimeout(err) ||
		apierrs.IsTooManyRequests(err) || apierrs.IsInternalError(err) ||
		errors.Is(err, context.DeadlineExceeded)
}

// userFrames returns the lines of a stack that belong neither to the runtime nor to package converge.
func userFrames(stack string) []string {
	var frames []string
	lines := strings.Split(stack, "\n")
	for i := 0; i+1 < len(lines); i++ {
		where := strings.TrimSpace(lines[i+1])
		if !strings.HasPrefix(lines[i+1], "\t") || strings.Contains(where, "/runtime/") ||
			strings.Contains(lines[i], "trueup.dev/converge.") || strings.Contains(lines[i], "trueup.dev/converge/internal/") {
			continue
		}
		where, _, _ = strings.Cut(where, " +0x")
		frames = append(frames, where)
	}
	return frames[:min(len(frames), 4)]
}

// sharedObjectsOracle checks that objects that caches have handed out without a copy are unmodified.
type sharedObjectsOracle struct{ Evidence }

func (o *sharedObjectsOracle) check() {
	kind, s, ok := o.Queues.FirstHandedOut(func(s Shared) bool { return !reflect.DeepEqual(s.Given, s.Stored) })
	if !ok {
		return
	}
	name := kind.Kind + " " + phrase.Name(client.ObjectKeyFromObject(s.Stored))
	o.Violate(finding.Violation{
		Oracle: finding.OracleSharedObjects, Cause: finding.CauseCacheModified, About: name,
		Message: name + " of the cache was modified",
	})
}

// leaksOracle reports goroutines that outlive their process. The bubble of testing/synctest detects them.
type leaksOracle struct{ Evidence }

// Deadlocked is called when the bubble has ended with blocked goroutines. If the oracle is off, it is only called for
// runs that are incomplete, and the violation counts.
func (o *leaksOracle) Deadlocked() {
	v := finding.Violation{
		Oracle: finding.OracleLeaks, Cause: finding.CauseGoroutines,
		Message: "goroutines of the reconciler outlive the process",
	}
	o.Violations = append(o.Violations, v)
	o.Tell(v)
}
