// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/phrase"
)

var (
	secrets    = CacheOf(corev1.SchemeGroupVersion.WithKind("Secret"))
	configMaps = CacheOf(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
)

// drawn has a lane at 10 % for the external system, then process, secrets, API server and user, 20 % apart.
func drawn(entries ...Entry) *drawing {
	return newDrawing(append(entries, Entry{From: TheOutside, To: secrets}), nil)
}

func TestNewDrawing_lanes(t *testing.T) {
	entries := []Entry{
		{From: Other("gc"), To: TheServer},
		{From: Other("user"), To: TheServer},
		{From: TheProcess, To: configMaps},
		{From: TheProcess, To: TheOutside},
		{},
		{From: Other(phrase.AnotherClient), To: TheServer},
		{From: TheProcess, To: configMaps},
	}
	d := newDrawing(entries, []Arrival{{Entry: Entry{From: TheServer, To: Place{CacheRole, "Widget.example.com"}}}})
	var got []string
	for _, l := range d.Lanes {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s", l.Title, l.Name))+fmt.Sprintf(" at %g", d.at[l.Place]))
	}
	want := []string{
		"outside at 6.3", "process at 18.8", "cache ConfigMap at 31.3", "cache Widget at 43.8", "API server at 56.3",
		"user at 68.8", "gc at 81.3", "another client at 93.8",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lanes (-want +got):\n%s", diff)
	}
}

// format describes a row, except for lanes and blocks that continue.
func format(shapes []shape) []string {
	var lines []string
	for _, s := range shapes {
		class := strings.Join(strings.Fields(s.Class), " ")
		switch {
		case s.Symbol != "":
			lines = append(lines, fmt.Sprintf("%s at %g (%s)", s.Symbol, s.X1, class))
		case s.Text != "":
			lines = append(lines, fmt.Sprintf("%q at %g (%s)", s.Text, s.X1, class))
		case s.X1 != s.X2:
			lines = append(lines, fmt.Sprintf("from %g to %g (%s)", s.X1, s.X2, class))
		}
	}
	return lines
}

func TestDrawing_row(t *testing.T) {
	call := func(e Entry) Entry {
		e.Who, e.From = "reconcile 1", TheProcess
		if e.To == (Place{}) {
			e.To = TheServer
		}
		return e
	}
	for _, c := range []struct {
		reason string
		entry  Entry
		want   []string
	}{
		{
			"a write with an effect", call(Entry{Version: 2}),
			[]string{"from 30 to 70 (arrow effect)", "right at 70 (arrow effect)", `"v2" at 70 (version)`},
		},
		{"a write without an effect", call(Entry{Version: 1}), []string{"from 30 to 70 (arrow)", "right at 70 (arrow)"}},
		{"a refused write", call(Entry{Version: 1, Failed: true}), []string{"from 30 to 70 (arrow)", "cross at 70 (arrow)"}},
		{
			"a read from the cache", call(Entry{To: secrets, Cache: "cache@1"}),
			[]string{"from 30 to 50 (arrow)", "right at 50 (arrow)", `"@1" at 50 (version)`},
		},
		{
			"nothing in the cache", call(Entry{To: secrets, Cache: "cache@1", Failed: true}),
			[]string{"from 30 to 50 (arrow)", "right at 50 (arrow)", `"@1" at 50 (version)`},
		},
		{"a read from an old cache", call(Entry{To: secrets, Cache: "cache@1 of 3", Mark: StaleMark}), []string{
			"from 30 to 50 (arrow stale)", "right at 50 (arrow stale)", `"@1 of 3" at 50 (version stale)`,
			"stale at 50 (sign stale)",
		}},
		{
			"a call outside", call(Entry{To: TheOutside, Weight: Write}),
			[]string{"from 30 to 10 (arrow effect)", "left at 10 (arrow effect)"},
		},
		{
			"a request that does not arrive",
			call(Entry{Mark: FaultMark, Fault: inject.TimeoutLost, Failed: true, Version: 1}),
			[]string{"from 30 to 60 (arrow fault)", "cross at 60 (arrow fault)", "fault at 30 (sign fault)"},
		},
		{
			"an answer that does not arrive",
			call(Entry{Mark: FaultMark, Fault: inject.TimeoutApplied, Failed: true, Version: 2}),
			[]string{
				"from 30 to 70 (arrow fault effect)", "right at 70 (arrow fault effect)", "from 70 to 40 (arrow event fault)",
				"cross at 40 (arrow fault)", `"v2" at 70 (version fault)`, "fault at 30 (sign fault)",
			},
		},
		{
			"a request that is refused with 500",
			call(Entry{Mark: FaultMark, Fault: inject.ServerError, Failed: true, Version: 1}),
			[]string{"from 30 to 70 (arrow fault)", "cross at 70 (arrow fault)", "fault at 30 (sign fault)"},
		},
		{"a crash before a write", call(Entry{Mark: FaultMark, Fault: inject.CrashBefore, Turn: Dying, Version: 1}), []string{
			"from 30 to 40 (arrow fault)", "cross at 40 (arrow fault)", "cross at 30 (arrow fault)", "fault at 30 (sign fault)",
		}},
		{
			"a write that is on its way", call(Entry{Mark: FaultMark, Fault: inject.HandOver, Turn: Dying, Version: 1}),
			[]string{"from 30 to 60 (arrow fault event)", "cross at 30 (arrow fault)", "fault at 30 (sign fault)"},
		},
		{"it arrives", call(Entry{Mark: StaleMark, Version: 2}), []string{
			"from 30 to 70 (arrow stale event)", "right at 70 (arrow stale event)", `"v2" at 70 (version stale)`,
			"stale at 30 (sign stale)",
		}},
		{"an event", Entry{Who: "watch", From: TheServer, To: secrets, News: Arriving, Cache: "cache@2"}, []string{
			"from 70 to 50 (arrow event)", "left at 50 (arrow event)", `"@2" at 50 (version before)`,
		}},
		{
			"an event that is late",
			Entry{Who: "watch", From: TheServer, To: secrets, News: Holding, Mark: FaultMark, Fault: inject.LagLong},
			[]string{"from 70 to 60 (arrow fault event)", "cross at 60 (arrow fault event)", "fault at 50 (sign fault)"},
		},
		{
			"the end of that",
			Entry{Who: "watch", From: TheServer, To: secrets, News: CatchingUp},
			[]string{"ring at 50 (arrow)"},
		},
		{
			"all events again",
			Entry{Who: "watch", From: TheServer, To: secrets, News: Repeating, Mark: FaultMark, Fault: inject.Resync},
			[]string{"fault at 50 (sign fault)"},
		},
		{"a user", Entry{Who: "user", From: Other("user"), To: TheServer, Version: 2}, []string{
			"from 90 to 70 (arrow effect)", "left at 70 (arrow effect)", `"v2" at 70 (version before)`,
		}},
		{"a user who waits", Entry{Who: "user", From: Other("user")}, []string{"ring at 90 (arrow)"}},
		{"a restart", Entry{Who: "process", From: TheProcess, Turn: Dying, Mark: FaultMark, Fault: inject.Restart}, []string{
			"cross at 30 (arrow fault)", "fault at 30 (sign fault)",
		}},
		{
			"the next process",
			Entry{Who: "process", From: TheProcess, Turn: Starting, Process: 2},
			[]string{"ring at 30 (arrow)", `"process 2" at 30 (version)`},
		},
		{
			"a violation",
			Entry{Who: "check", Mark: HarmMark},
			[]string{"from 0 to 100 (across violation)", "violation at 70 (sign violation)"},
		},
	} {
		t.Run(c.reason, func(t *testing.T) {
			d := drawn()
			d.version = 1
			if diff := cmp.Diff(c.want, format(d.row(c.entry))); diff != "" {
				t.Errorf("row (-want +got):\n%s", diff)
			}
		})
	}
}

// columns describes the lines of a lane, or the blocks on it.
func columns(shapes []shape, class string, x float64) []string {
	var lines []string
	for _, s := range shapes {
		if strings.HasPrefix(s.Class, class) && s.X1 == x && s.X2 == x {
			lines = append(lines, fmt.Sprintf("%s %s-%s +%d", s.Class, s.Y1, s.Y2, s.Shift))
		}
	}
	return lines
}

// TestDrawing_processes checks that a lane ends with its process and starts with the next one, and that concurrent
// reconciles are side by side.
func TestDrawing_processes(t *testing.T) {
	d := drawn()
	turns := func(who string, turn Turn) Entry { return Entry{Who: who, From: TheProcess, Turn: turn} }
	for i, c := range []struct {
		entry        Entry
		lane, blocks []string
	}{
		{Entry{From: Other("user")}, []string{"lane 0-100% +0"}, nil},
		{turns("reconcile 1", Beginning), []string{"lane 0-100% +0"}, []string{"block 6-100% +0"}},
		{turns("reconcile 2", Beginning), []string{"lane 0-100% +0"}, []string{"block 0-100% +0", "block 6-100% +14"}},
		{turns("reconcile 1", Ending), []string{"lane 0-100% +0"}, []string{"block 0-24 +0", "block 0-100% +14"}},
		{turns("reconcile 3", Beginning), []string{"lane 0-100% +0"}, []string{"block 0-100% +14", "block 6-100% +0"}},
		{turns("reconcile 2", Dying), []string{"lane 0-15 +0"}, []string{"block 0-24 +14", "block 0-24 +0"}},
		{Entry{From: Other("user")}, nil, nil},
		{turns("process", Starting), []string{"lane 15-100% +0"}, nil},
		{Entry{From: Other("user")}, []string{"lane 0-100% +0"}, nil},
	} {
		shapes := d.row(c.entry)
		if diff := cmp.Diff(c.lane, columns(shapes, "lane", 30)); diff != "" {
			t.Errorf("lane in row %d (-want +got):\n%s", i, diff)
		}
		if diff := cmp.Diff(c.blocks, columns(shapes, "block", 30)); diff != "" {
			t.Errorf("blocks in row %d (-want +got):\n%s", i, diff)
		}
	}
}

// TestDrawing_held checks that the lane of a cache shows how long its events are delayed.
func TestDrawing_held(t *testing.T) {
	d := drawn()
	watch := func(news News) Entry { return Entry{Who: "watch", From: TheServer, To: secrets, News: news} }
	for i, c := range []struct {
		entry Entry
		want  []string
	}{
		{watch(Arriving), []string{"lane 0-100% +0"}},
		{watch(Holding), []string{"lane 0-15 +0", "lane held 15-100% +0"}},
		{Entry{From: Other("user")}, []string{"lane held 0-100% +0"}},
		{watch(CatchingUp), []string{"lane held 0-15 +0", "lane 15-100% +0"}},
		{watch(Holding), []string{"lane 0-15 +0", "lane held 15-100% +0"}},
		{Entry{From: TheProcess, Turn: Dying}, []string{"lane held 0-15 +0", "lane 15-100% +0"}},
		{watch(Repeating), []string{"lane 0-100% +0"}},
	} {
		if diff := cmp.Diff(c.want, columns(d.row(c.entry), "lane", 50)); diff != "" {
			t.Errorf("row %d (-want +got):\n%s", i, diff)
		}
	}
}
