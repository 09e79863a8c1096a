// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"
	"slices"
	"strings"
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
		text = fmt.Sprintf("recording: %d of %s injected, ", r.Injected, plural(r.Faults, "fault"))
	}
	if r.Errors > 0 {
		text += fmt.Sprintf("%d of %s occurred again", r.Again, plural(r.Errors, "error"))
	} else {
		text += "no reconcile of it returned an error"
	}
	if r.Failed {
		return text + "; it fails"
	}
	return text + fmt.Sprintf("; it does not fail; %s tried", plural(r.Similar, "similar schedule"))
}

// maxSimilar limits the schedules that are similar to that of a recording.
const maxSimilar = 1000

// recorded repeats the recording, and tries similar schedules.
func (x *exploration) recorded(reference *outcome) *Failure {
	recorded := x.plan.recorded
	if recorded == nil {
		return nil
	}
	log := &timeline{}
	o := x.plan.try(x.t, recorded.schedule, log)
	x.cert.Schedules++
	r := &Recorded{
		Replay: x.plan.encode(recorded.schedule), Faults: len(recorded.schedule), Injected: o.injected,
		Errors: len(recorded.errors),
	}
	x.cert.Recorded = r
	for _, text := range recorded.errors {
		if slices.ContainsFunc(log.entries, func(e entry) bool { return alikeText(e.result) == "error: "+text }) {
			r.Again++
		}
	}
	if v, failed := o.violation(); failed {
		r.Failed = true
		return &Failure{Violation: v, schedule: recorded.schedule}
	}
	for _, s := range recorded.similar(reference.points) {
		r.Similar++
		if _, failure := x.try(s); failure != nil {
			return failure
		}
	}
	return nil
}

// lookAlike are the faults that a controller cannot tell from another one, or whose consequences are like those of the
// other one.
var lookAlike = map[Fault][]Fault{
	FaultTimeoutApplied: {FaultTimeoutLost, FaultCrashAfter},
	FaultTimeoutLost:    {FaultTimeoutApplied, FaultCrashAfter},
	FaultServerError:    {FaultTimeoutApplied},
	FaultLagReconcile:   {FaultLagLong, FaultLagRead, FaultRelist},
	FaultLagLong:        {FaultLagReconcile, FaultLagRead, FaultRelist},
	FaultConflict:       {FaultRecreated},
	FaultExists:         {FaultTaken},
	FaultDeleted:        {FaultRecreated},
}

// similar returns schedules like that of the recording, the most similar ones first.
func (r *recordedFaults) similar(points []injectionPoint) []schedule {
	var found []schedule
	seen := map[string]bool{r.schedule.encode(0): true}
	add := func(s schedule) {
		if key := s.encode(0); !seen[key] && len(s) > 0 && len(found) < maxSimilar {
			seen[key] = true
			found = append(found, s)
		}
	}
	for _, d := range r.schedule {
		add(schedule{d})
	}
	var others []deviation
	for i, d := range r.schedule {
		for _, other := range alternatives(d) {
			replaced := slices.Clone(r.schedule)
			replaced[i] = other
			add(replaced)
			others = append(others, other)
		}
	}
	for _, d := range append(others, r.lagsOfConflicts()...) {
		add(schedule{d})
	}
	if r.restarted {
		for _, d := range candidatesOf(points) {
			if slices.Contains([]Fault{FaultCrashAfter, FaultCrashBefore, FaultHandOver, FaultRestart}, d.fault) {
				add(schedule{d})
			}
		}
	}
	return found
}

// alternatives returns the deviations that are most similar to one: the fault at the repetitions next to it, and the
// faults that look alike.
func alternatives(d deviation) []deviation {
	var found []deviation
	for _, by := range []int{0, -1, 1, -2, 2} {
		for _, fault := range append([]Fault{d.fault}, lookAlike[d.fault]...) {
			other := d
			if other.fault, other.n = fault, d.n+by; other.n > 0 && other != d {
				found = append(found, other)
			}
		}
	}
	return found
}

// lagsOfConflicts returns delays of events of the objects whose writes had conflicts: a cache without the last version
// leads to these, too.
func (r *recordedFaults) lagsOfConflicts() []deviation {
	var found []deviation
	for _, d := range r.schedule {
		if d.fault != FaultConflict && d.fault != FaultExists && d.fault != FaultDeleted {
			continue
		}
		kind, _, _ := strings.Cut(d.kind, "/")
		for _, act := range []string{"event modified", "event added", "event deleted"} {
			for n := 1; n <= 3; n++ {
				at := site{program: d.program, act: act, kind: kind, key: d.key}
				found = append(found, deviation{point{at, n}, FaultLagReconcile}, deviation{point{at, n}, FaultLagLong})
			}
		}
	}
	return found
}
