// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"trueup.dev/internal/engine/calledby"
)

// schedule is a sequence of events. It consists of bytes, so that a fuzzer can change it and shrink can shorten it:
// removing a step does not change the others, and a byte 0 selects the normal behavior.
type schedule struct {
	head  []byte
	steps [][]byte
}

const (
	headSize = 8
	stepSize = 16
)

// randomSchedule returns the schedule of a seed.
func randomSchedule(seed uint64) schedule {
	random := rand.New(rand.NewPCG(seed, 0))
	s := schedule{head: randomBytes(random, headSize)}
	for range 6 + random.IntN(20) {
		s.steps = append(s.steps, randomBytes(random, stepSize))
	}
	return s
}

func randomBytes(random *rand.Rand, n int) []byte {
	var data []byte
	for len(data) < n {
		data = binary.LittleEndian.AppendUint64(data, random.Uint64())
	}
	return data[:n]
}

// run runs a schedule and returns the violation, if any. It must run in a synctest bubble.
func (s schedule) run(ctx context.Context, counts map[string]int, trace *[]string) (violated *violation) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case violation:
			violated = &r
		default:
			panic(fmt.Sprintf("%v\nin the schedule %x %x", r, s.head, s.steps))
		}
	}()
	w := newScheduleWorld(ctx, s.head, counts, trace)
	for i, step := range s.steps {
		w.tracef("step %d:", i)
		w.step(step)
	}
	w.finish()
	return nil
}

// shrink removes steps and choices while the same check is violated.
func (s schedule) shrink(ctx context.Context, check string) schedule {
	fails := func(s schedule) bool {
		violated := s.run(ctx, map[string]int{}, nil)
		return violated != nil && violated.check == check
	}
	for size := len(s.steps); size > 0; size /= 2 {
		for i := 0; i+size <= len(s.steps); {
			if shorter := (schedule{s.head, slices.Delete(slices.Clone(s.steps), i, i+size)}); fails(shorter) {
				s = shorter
			} else {
				i++
			}
		}
	}
	for i, step := range s.steps {
		for j := range step {
			simpler := schedule{s.head, slices.Clone(s.steps)}
			simpler.steps[i] = slices.Clone(s.steps[i])
			if simpler.steps[i][j] = 0; s.steps[i][j] != 0 && fails(simpler) {
				s = simpler
			}
		}
	}
	return s
}

// check runs a schedule, and reports a violation with a minimal list of steps.
func (s schedule) check(t *testing.T, ctx context.Context, name string, counts map[string]int) bool {
	t.Helper()
	violated := s.run(ctx, counts, nil)
	if violated == nil {
		return true
	}
	short := s.shrink(ctx, violated.check)
	trace := []string{}
	last := short.run(ctx, map[string]int{}, &trace)
	t.Errorf("%s violates: %v\nsteps:\n%s", name, last, strings.Join(trace, "\n"))
	return false
}

func TestSchedules(t *testing.T) {
	ctx := calledby.Controller()
	workers := runtime.GOMAXPROCS(0)
	begin := time.Now()
	counts := map[string]int{}
	var mu sync.Mutex
	t.Run("seeds", func(t *testing.T) {
		for worker := range workers {
			t.Run(fmt.Sprint(worker), func(t *testing.T) {
				t.Parallel()
				mine := map[string]int{}
				defer func() {
					mu.Lock()
					defer mu.Unlock()
					for what, n := range mine {
						counts[what] += n
					}
				}()
				synctest.Test(t, func(t *testing.T) {
					for seed, failures := worker, 0; seed < scheduleCount() && failures < 3; seed += workers {
						if !randomSchedule(uint64(seed)).check(t, ctx, fmt.Sprintf("seed %d", seed), mine) {
							failures++
						}
						mine["schedules"]++
					}
				})
			})
		}
	})
	t.Logf(
		"%d schedules in %s, race detector %t: %v", counts["schedules"], time.Since(begin).Round(time.Millisecond),
		raceDetector, counts,
	)
	if t.Failed() {
		return
	}
	for _, what := range []string{
		"Created", "Updated", "Deleted", "Resynced", "failures", "panics", "terminal failures", "requests for another call",
		"exhausted retries", "crashes",
		"failed calls", "lost responses",
	} {
		if counts[what] < counts["schedules"]/200 {
			t.Errorf("the schedules cover too little: %s %d times", what, counts[what])
		}
	}
}

// FuzzSchedules takes the choices of a schedule from the fuzzer.
func FuzzSchedules(f *testing.F) {
	for seed := range uint64(64) {
		s := randomSchedule(seed)
		f.Add(append(slices.Clone(s.head), slices.Concat(s.steps...)...))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		head := data[:min(len(data), headSize)]
		s := schedule{head: head, steps: slices.Collect(slices.Chunk(data[len(head):], stepSize))}
		if len(s.steps) > 60 {
			t.Skip("longer schedules find no other violations")
		}
		ctx := calledby.Controller()
		synctest.Test(t, func(t *testing.T) { s.check(t, ctx, "the input", map[string]int{}) })
	})
}

// scheduleCount returns the number of schedules that the test runs.
func scheduleCount() int {
	switch {
	case testing.Short():
		return 1_500
	case raceDetector:
		return 10_000
	default:
		return 100_000
	}
}
