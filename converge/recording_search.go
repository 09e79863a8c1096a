// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"
	"slices"

	"trueup.dev/converge/internal/explain"
	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/judge"
	"trueup.dev/converge/internal/phrase"
)

// Recorded says how much of a recording happened again, see [FromRecording].
type Recorded struct {
	// Replay is the schedule of the recording for the flag -converge.replay.
	Replay string
	// Faults is the number of failed answers and late events of the recording that faults stand for, and Injected is the
	// number of these that were injected. An error of the recording that is the consequence of another one may be missing.
	Faults, Injected int
	// Errors is the number of different errors of reconciles in the recording, and Again is the number of these that
	// occurred again, but for digits in their texts.
	Errors, Again int
	// Failed reports whether the schedule of the recording itself fails, and Similar is the number of similar schedules
	// that were tried after it.
	Failed  bool
	Similar int
}

// String describes in one line whether the same happened.
func (r Recorded) String() string {
	text := "recording: no fault, "
	if r.Faults > 0 {
		text = fmt.Sprintf("recording: %d of %s injected, ", r.Injected, phrase.Plural(r.Faults, "fault"))
	}
	if r.Errors > 0 {
		text += fmt.Sprintf("%d of %s occurred again", r.Again, phrase.Plural(r.Errors, "error"))
	} else {
		text += "no reconcile of it returned an error"
	}
	if r.Failed {
		return text + "; it fails"
	}
	return text + fmt.Sprintf("; it does not fail; %s tried", phrase.Plural(r.Similar, "similar schedule"))
}

// recorded repeats the recording, and tries similar schedules.
func (x *exploration) recorded(reference *judge.Outcome) *Failure {
	recorded := x.plan.recorded
	if recorded == nil {
		return nil
	}
	log := &explain.Timeline{}
	o := x.plan.try(x.t, recorded.Schedule, log)
	x.cert.Schedules++
	r := &Recorded{
		Replay: x.plan.encode(recorded.Schedule), Faults: len(recorded.Schedule), Injected: o.Injected,
		Errors: len(recorded.Errors),
	}
	x.cert.Recorded = r
	for _, text := range recorded.Errors {
		if slices.ContainsFunc(
			log.Entries, func(e explain.Entry) bool { return inject.AlikeText(e.Result) == "error: "+text },
		) {
			r.Again++
		}
	}
	if v, failed := o.First(); failed {
		r.Failed = true
		return &Failure{Violation: Violation(v), schedule: recorded.Schedule}
	}
	for _, s := range recorded.Similar(reference.Points) {
		r.Similar++
		if _, failure := x.try(s); failure != nil {
			return failure
		}
	}
	return nil
}
