// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"fmt"
	"slices"

	"trueup.dev/lab/corpus/mutation"
)

func (r *Report) bar(what, wanted string, met bool, format string, args ...any) {
	r.Bars = append(r.Bars, Bar{What: what, Wanted: wanted, Measured: fmt.Sprintf(format, args...), Met: met})
}

func (r *Report) judgeSearches() {
	var faults, lines []int
	for _, s := range r.Searches {
		if s.Found {
			faults, lines = append(faults, s.Shrunk), append(lines, s.Lines)
		}
	}
	for _, style := range []string{direct, controller} {
		r.judgeFound("bugs of one fault or none, default run, "+style, 100, func(s Search) bool {
			return s.Faults < 2 && s.Style == style && s.Budget == 0
		})
		r.judgeFound("bugs of two faults, default run, "+style, 95, func(s Search) bool {
			return s.Faults > 1 && s.Style == style && s.Budget == 0
		})
	}
	r.judgeFound("bugs of two faults, found within 60 s, seeds 1 to 3", 95, func(s Search) bool { return s.Budget > 0 })
	if len(faults) > 0 {
		f, l := median(faults), median(lines)
		r.bar(
			"shrunk failures, median", "≤ 2 faults, ≤ 12 lines", f <= 2 && l <= 12, "%d faults, %d lines (at most %d and %d)", f,
			l, slices.Max(faults), slices.Max(lines),
		)
	}
}

// judgeFound compares the share of searches that have found their bug.
func (r *Report) judgeFound(what string, percent int, counts func(Search) bool) {
	found, all := 0, 0
	for _, s := range r.Searches {
		if counts(s) {
			all++
			if s.Found {
				found++
			}
		}
	}
	wanted := fmt.Sprintf("≥ %d %%", percent)
	if percent == 100 {
		wanted = "100 %"
	}
	if all > 0 {
		r.bar(what, wanted, 100*found >= percent*all, "%d of %d", found, all)
	}
}

// judgeUsual judges the default runs of correct reconcilers.
func (r *Report) judgeUsual() {
	if len(r.Usual) == 0 {
		return
	}
	alarms := len(slices.DeleteFunc(slices.Clone(r.Usual), func(s Search) bool { return !s.Found }))
	r.bar("false alarms of default runs, both ways", "0", alarms == 0, "%d of %d", alarms, len(r.Usual))
	for _, style := range []string{direct, controller} {
		var seconds []float64
		for _, s := range r.Usual {
			if s.Style == style {
				seconds = append(seconds, s.Processor)
			}
		}
		if len(seconds) == 0 {
			continue
		}
		slices.Sort(seconds)
		within := len(slices.DeleteFunc(slices.Clone(seconds), func(s float64) bool { return s > 2 }))
		r.bar("processor time of a default run, "+style, "≤ 2 s for 95 %", 100*within >= 95*len(seconds),
			"median %.1f s, at most %.1f s, %d of %d within 2 s", median(seconds), seconds[len(seconds)-1], within, len(seconds))
	}
	l := r.Large
	r.bar("default run of a large scenario, controller", "≥ 300 points in ≤ 60 s", l.Points >= 300 && l.Seconds <= 60 &&
		!l.Found, "%d points, %d of %d single faults, %d schedules in %.0f s", l.Points, l.Singles, l.Singles+l.Left,
		l.Schedules, l.Seconds)
}

func (r *Report) judgeControls() {
	if len(r.Controls) == 0 {
		return
	}
	alarms, schedules := 0, 0
	for _, c := range r.Controls {
		if c.Alarm != "" {
			alarms++
		}
		schedules += c.Schedules
	}
	r.bar(
		"false alarms: all single faults, all pairs, 10,000 random schedules each", "0", alarms == 0,
		"%d of %d correct ones, in %d schedules", alarms, len(r.Controls), schedules,
	)
}

func (r *Report) judgeMutants() {
	all := r.Killed + len(r.Survivors)
	if all == 0 {
		return
	}
	proved, explained, missed, later := 0, 0, 0, 0
	for _, m := range r.Survivors {
		switch reason, known := mutation.Reasons[m.Name]; {
		case m.Equivalent:
			proved++
		case known && !reason.Missed:
			explained++
		default:
			missed++
		}
		if m.Later != "" {
			later++
		}
	}
	percent := func(of int) float64 { return 100 * float64(r.Killed) / float64(max(of, 1)) }
	r.bar("mutants killed, of those that are not equivalent", "≥ 90 % of ≥ 500",
		all >= 500 && percent(all-proved-explained) >= 90,
		"%d of %d: %.1f %%", r.Killed, all-proved-explained, percent(all-proved-explained))
	r.bar(
		"mutants killed, of those not proved equivalent in all runs", "", percent(all-proved) >= 90, "%d of %d: %.1f %%",
		r.Killed, all-proved, percent(all-proved),
	)
	r.bar(
		"mutants killed, of all", "", percent(all) >= 90, "%d of %d: %.1f %% (%d proved equivalent, %d explained, %d missed)",
		r.Killed, all, percent(all), proved, explained, missed,
	)
	r.bar(
		"survivors, but for those proved equivalent, that a longer search finds", "", true, "%d of %d", later,
		explained+missed,
	)
	problems := len(mutation.Unexplained(r.Survivors, r.Complete))
	r.bar("survivors without a reason, reasons without a survivor", "0", problems == 0, "%d", problems)
}
