// SPDX-License-Identifier: Apache-2.0

package search

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"trueup.dev/converge/internal/finding"
	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/judge"
)

// pointsOf returns points at repeated updates of two kinds.
func pointsOf(repetitions int) []inject.Injectable {
	var points []inject.Injectable
	for n := range repetitions {
		for i, kind := range []string{"ConfigMap", "Secret"} {
			version := int64(10*n + 2*i)
			points = append(points, inject.Injectable{
				Point:   inject.Point{Site: inject.Site{Act: "update", Kind: kind}, N: n + 1},
				Faults:  inject.SetOf(inject.Conflict, inject.ServerError, inject.CrashAfter),
				Version: version, After: version + 1,
			})
		}
	}
	return points
}

// TestSampleBeginsWithEachKind checks the order of candidates, and that samples have each fault at each kind.
func TestSampleBeginsWithEachKind(t *testing.T) {
	found := inject.CandidatesOf(pointsOf(5))
	rounds := inject.RoundsOf(found)
	var order []int
	first := 0
	for _, d := range found {
		order = append(order, rounds(d))
		if rounds(d) == inject.FirstOfKind {
			first++
		}
	}
	if !slices.IsSorted(order) || first == 0 || order[len(order)-1] != inject.Repeated {
		t.Errorf("the rounds are %v", order)
	}
	chosen := Sample(found, first+3, rounds)
	if len(chosen) != first+3 {
		t.Errorf("the sample has %d faults, want %d", len(chosen), first+3)
	}
	kinds := map[string]bool{}
	for _, d := range chosen {
		kinds[fmt.Sprint(d.Fault, d.Act, d.Kind)] = true
	}
	for _, d := range found {
		if !kinds[fmt.Sprint(d.Fault, d.Act, d.Kind)] {
			t.Errorf("%s is not in the sample, nor at another point of the kind", d)
		}
	}
}

// has reports whether a schedule has a fault at a kind.
func has(s inject.Schedule, fault inject.Fault, kind string) bool {
	return slices.ContainsFunc(s, func(d inject.Deviation) bool { return d.Fault == fault && d.Kind == kind })
}

// TestSchedules finds failures of one fault, of a fault that has an effect only after another one, and of a pair, and
// shrinks each to the earliest and simplest faults.
func TestSchedules(t *testing.T) {
	extra := inject.Injectable{
		Point:  inject.Point{Site: inject.Site{Act: "delete", Kind: "Secret"}, N: 1},
		Faults: inject.SetOf(inject.ServerError, inject.TimeoutLost),
	}
	for name, c := range map[string]struct {
		fails func(inject.Schedule) bool
		want  []string
	}{
		"nothing": {fails: func(inject.Schedule) bool { return false }},
		"a single fault": {
			fails: func(s inject.Schedule) bool { return s.Has(inject.CrashAfter) },
			want:  []string{"crash-after at update ConfigMap"},
		},
		"a fault after another one": {
			fails: func(s inject.Schedule) bool { return s.At(extra.Point) != "" },
			want:  []string{"timeout-lost at delete Secret"},
		},
		"a pair": {
			fails: func(s inject.Schedule) bool {
				return has(s, inject.Conflict, "ConfigMap") && has(s, inject.CrashAfter, "Secret")
			},
			want: []string{"conflict at update ConfigMap", "crash-after at update Secret"},
		},
	} {
		x := &Schedules{
			Limits: Limits{Recoveries: -1, Pairs: -1, Random: 5}, Reference: pointsOf(3), Length: 1, Begin: time.Now(),
			Run: func(s inject.Schedule) judge.Outcome {
				o := judge.Outcome{Points: pointsOf(3)}
				if s.Has(inject.Conflict) {
					o.Points = append(o.Points, extra)
				}
				if c.fails(s) {
					o.Violations = []finding.Violation{{About: "it"}}
				}
				return o
			},
		}
		var got []string
		if f := First(x.Phases()...); f != nil {
			ShrinkSchedule(f)
			for _, d := range f.Candidate {
				got = append(got, d.String())
			}
		} else if x.Singles != x.Enumerated || x.Counts.Pairs != x.PairsInAll || x.Counts.Random != 5 {
			t.Errorf("%s: not everything was tried: %+v", name, x.Counts)
		}
		slices.Sort(got)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
