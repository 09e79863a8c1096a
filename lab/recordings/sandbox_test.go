// SPDX-License-Identifier: Apache-2.0

package recordings

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"trueup.dev/converge"
	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/lab/corpus"
	"trueup.dev/observe/recorder"
)

func TestMain(m *testing.M) { apitest.Main(m) }

var all = flag.Bool("recordings.all", false, "record all bugs that can run in a sandbox, and print what finds them")

// atLeast is how many of the pinned bugs must be found. What happens under load is not the same each time.
const atLeast = 10

// pinned are bugs to which a recording of a sandbox under load leads.
var pinned = []string{
	"c01-key-of-generated-name", "c06-version-of-another-read", "c07-rolled-back-success",
	"c07-timeout-taken-for-success", "c08-time-of-last-sync", "c09-version-in-status",
	"c10-waits-for-garbage-collector", "c11-no-owner-reference", "c12-ready-by-old-numbers", "c12-shadowed-error",
	"c14-error-logged", "c15-members-in-list-order",
}

// TestDoesARecordingOfTheClusterLeadToAFailingTest runs controllers with a bug in a sandbox under load, records the
// object in most trouble, and expects that the test of the recording fails. The test of the same recording with the
// correct controller passes, and so does the test of a recording of the correct controller.
func TestDoesARecordingOfTheClusterLeadToAFailingTest(t *testing.T) {
	table, tried, found := &table{}, atomic.Int64{}, atomic.Int64{}
	t.Cleanup(func() {
		t.Log(table)
		if n := found.Load(); n < atLeast && tried.Load() == int64(len(pinned)) {
			t.Errorf("recordings lead to %d of the %d pinned bugs, want at least %d", n, len(pinned), atLeast)
		}
	})
	for _, e := range corpus.All() {
		isPinned := slices.Contains(pinned, e.Name)
		if e.Buggy == nil || !isPinned && !*all {
			continue
		}
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			if isPinned {
				tried.Add(1)
			}
			if e.Buggy().New == nil {
				t.Skip("the controller registers itself, and is not observed")
			}
			started := time.Now()
			bugs, twins := record(t, e.Buggy()), record(t, e.Correct())
			ran := time.Since(started)
			o := converge.DefaultOptions()
			o.Pairs, o.Recoveries, o.SingleRequests = 0, 0, 10_000 // a recording leads to all of these
			buggy := Replay(t, bugs, e.Buggy(), o)
			by := FoundBy(buggy)
			for what, report := range map[string]*converge.Report{
				"recording of the bug": Replay(t, bugs, e.Correct(), o), "recording of the twin": Replay(t, twins, e.Correct(), o),
			} {
				if report.Failure != nil {
					by += ", false alarm"
					t.Errorf("false alarm of the correct controller with the %s: %s", what, report.Failure)
				}
			}
			table.add("%-32s %-24s %v; load %s, replays %s", e.Name, by, buggy.Certificate.Recorded,
				ran.Round(time.Second/10), (time.Since(started) - ran).Round(time.Second/10))
			if isPinned && buggy.Failure != nil {
				found.Add(1)
			}
		})
	}
}

// record returns the recording of the object in most trouble after a scenario ran under load.
func record(t *testing.T, s converge.Scenario) string {
	t.Helper()
	l := runLoad(t, s, manyCopies, patience)
	objects, _ := l.recorder.Objects(recorder.Query{Limit: 1})
	if len(objects) == 0 || objects[0].LastOutcome == recorder.Panicked {
		t.Skip("the controller needs an external system, or the fixed namespace of the corpus")
	}
	return l.record(t)
}

// table has a line for each bug.
type table struct {
	mu    sync.Mutex
	lines []string
}

func (t *table) add(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, fmt.Sprintf(format, args...))
}

func (t *table) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	slices.Sort(t.lines)
	return "bug, what led to the failure:\n" + strings.Join(t.lines, "\n")
}
