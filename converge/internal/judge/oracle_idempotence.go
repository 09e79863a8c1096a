// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"slices"
	"strings"

	"trueup.dev/converge/internal/finding"
)

// idempotenceOracle reconciles all objects again when the controller is idle, which must not change anything, nor try
// to.
type idempotenceOracle struct {
	Evidence

	// twice is set for a run that checks each state twice.
	twice bool
}

// check calls again, which reconciles all objects, once or twice.
func (o *idempotenceOracle) check(again func()) {
	rounds := 1
	if o.twice {
		rounds = 2
	}
	for range rounds {
		written, needless, since := len(o.Trace.Written), len(o.Trace.Needless), o.World.Server.Version()
		again()
		if o.Failed() {
			return
		}
		if _, off := o.Scenario.Off[finding.OracleIdempotence]; off {
			continue
		}
		switch {
		case len(o.Trace.Written) > written:
			o.redundant(o.Trace.Written[written:], since, again)
			return
		case len(o.Trace.Needless) > needless:
			if o.needless(o.Trace.Needless[needless:], again); o.Failed() {
				return
			}
		}
	}
}

// redundant reports writes since a version. Writes that are not repeated were due earlier.
func (o *idempotenceOracle) redundant(writes []string, since int64, again func()) {
	v := finding.Violation{
		Oracle: finding.OracleIdempotence, Cause: finding.CauseRedundantWrite, About: writes[len(writes)-1],
		Message: "another reconcile, without any change, writes: " + listed(distinct(writes)),
	}
	written := len(o.Trace.Written)
	again()
	if !o.Failed() && len(o.Trace.Written) == written {
		v.Cause = finding.CauseMissedWork
		v.Message += ", which was due before"
	}
	if f, ok := FightIn(o.history().Revisions(since), LeastTurns); ok && !o.Failed() {
		v = f.Violation(o.history(), finding.OracleIdempotence, "another reconcile, without any change, writes: ")
	}
	o.Replace(v)
}

// needless reports updates and patches without an effect that are repeated: each reconcile makes requests for nothing.
func (o *idempotenceOracle) needless(first []string, again func()) {
	before := len(o.Trace.Needless)
	again()
	if o.Failed() || len(o.Trace.Needless) == before {
		return
	}
	if f, ok := o.history().WebhookFight(o.Trace.Mutations); ok {
		o.Violate(
			f.Violation(o.history(), finding.OracleIdempotence, "each reconcile makes a request that changes nothing: "),
		)
		return
	}
	second := o.Trace.Needless[before:]
	last := second[len(second)-1]
	repeated := slices.DeleteFunc(distinct(second), func(request string) bool { return !slices.Contains(first, request) })
	message := "each reconcile makes a request that changes nothing: "
	switch len(repeated) {
	case 0:
		repeated = []string{last}
	case 1:
	default:
		message = fmt.Sprintf("each reconcile makes %d requests that change nothing: ", len(repeated))
	}
	o.Violate(finding.Violation{
		Oracle: finding.OracleIdempotence, Cause: finding.CauseNoOpWrite, About: last, Message: message + listed(repeated),
	})
}

// distinct returns the first one of equal texts.
func distinct(texts []string) []string {
	var found []string
	for _, text := range texts {
		if !slices.Contains(found, text) {
			found = append(found, text)
		}
	}
	return found
}

// mostListed limits the requests that a message names.
const mostListed = 6

// listed names requests in a message.
func listed(requests []string) string {
	if more := len(requests) - mostListed; more > 0 {
		return fmt.Sprintf("%s, and %d more", strings.Join(requests[:mostListed], ", "), more)
	}
	return strings.Join(requests, ", ")
}
