// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"trueup.dev/lab/corpus/mutation"
)

// Report contains the measurements. It is safe for concurrent use.
type Report struct {
	// Measured has the day on which each part was measured.
	Measured map[string]string `json:"measured"`
	Go       string            `json:"go"`
	CPUs     int               `json:"cpus"`
	// Complete reports whether there are measurements of all parts. Judge sets it.
	Complete bool `json:"-"`
	// Interrupted is set if a measurement was interrupted.
	Interrupted bool `json:"interrupted,omitempty"`
	// Entries is the number of entries, and Buggy the number of them that have a bug.
	Entries int `json:"entries"`
	Buggy   int `json:"buggy"`

	// Searches are the attempts to find a bug, and Controls the results of correct reconcilers.
	Searches []Search  `json:"searches"`
	Controls []Control `json:"controls"`
	// Usual are the default runs of correct reconcilers, and Large is the run of one with many objects.
	Usual []Search `json:"usual"`
	Large Search   `json:"large"`
	// Killed is the number of mutants that were found, and Survivors are the others.
	Killed    int               `json:"killed"`
	Survivors []mutation.Result `json:"survivors"`
	// Pairs are bugs of other kinds, and Operators what public operators show.
	Pairs     []Pair    `json:"pairs"`
	Operators Operators `json:"operators"`
	// Speed is the number of schedules per second and core, by the way in which the reconciler is called.
	Speed map[string]float64 `json:"speed,omitempty"`
	// Lines is the number of lines that a test of a reconciler needs.
	Lines int `json:"lines,omitempty"`
	// Bars are the targets. Judge sets them.
	Bars []Bar `json:"-"`

	mu sync.Mutex
}

// Search is a search for a failure.
type Search struct {
	Entry string `json:"entry"`
	// Style is the way in which the reconciler is called: direct, or by a controller.
	Style string `json:"style"`
	// Faults is the number of faults that the bug needs, and Shrunk the number after shrinking.
	Faults int    `json:"faults,omitempty"`
	Seed   uint64 `json:"seed"`
	// Budget is how long combinations of faults are tried, in seconds. It is 0 for a default run.
	Budget  float64 `json:"budget,omitempty"`
	Found   bool    `json:"found"`
	Failure string  `json:"failure,omitempty"`
	Oracle  string  `json:"oracle,omitempty"`
	Shrunk  int     `json:"shrunk,omitempty"`
	// Lines is the length of the timeline.
	Lines int `json:"lines,omitempty"`
	// Points is the number of injection points without faults. Singles counts the single faults that were tried, and Left
	// those that were not.
	Points    int `json:"points"`
	Singles   int `json:"singles"`
	Left      int `json:"left,omitempty"`
	Schedules int `json:"schedules"`
	// Seconds is the duration, and Processor the processor time.
	Seconds   float64 `json:"seconds"`
	Processor float64 `json:"processor"`
}

// Control is the result of a correct reconciler, for which converge must find nothing.
type Control struct {
	Entry string `json:"entry"`
	// Alarm is a violation that was found nevertheless, with the schedule.
	Alarm     string  `json:"alarm,omitempty"`
	Replay    string  `json:"replay,omitempty"`
	Singles   int     `json:"singles"`
	Pairs     int     `json:"pairs"`
	Random    int     `json:"random"`
	Schedules int     `json:"schedules"`
	Seconds   float64 `json:"seconds"`
}

// Bar is a target.
type Bar struct {
	What     string `json:"what"`
	Wanted   string `json:"wanted"`
	Measured string `json:"measured"`
	Met      bool   `json:"met"`
}

// New returns an empty report.
func New(entries, buggy int) *Report {
	return &Report{
		Measured: map[string]string{}, Go: runtime.Version(), CPUs: runtime.NumCPU(), Entries: entries, Buggy: buggy,
	}
}

// Begin records the day on which a part is measured.
func (r *Report) Begin(part string) {
	r.Add(func(r *Report) { r.Measured[part] = time.Now().UTC().Format(time.DateOnly) })
}

// Continue returns a report with the measurements of an earlier one, but for some parts, which are measured again:
// costs, bugs, alarms, mutants and others. It keeps the measurements of entries whose name does not match only. Mutants
// are counted in total, so only mutants of new entries can be measured alone.
func Continue(file, parts string, only *regexp.Regexp, entries, buggy int) (*Report, error) {
	r := New(entries, buggy)
	old, err := Read(file)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	all := only.String() == ""
	r.Interrupted, r.Measured = old.Interrupted, old.Measured
	again := func(part, entry string) bool { return strings.Contains(parts, part) && only.MatchString(entry) }
	if !strings.Contains(parts, "costs") || !all {
		r.Speed, r.Lines = old.Speed, old.Lines
	}
	if !strings.Contains(parts, "others") || !all {
		r.Large, r.Pairs, r.Operators = old.Large, old.Pairs, old.Operators
	}
	r.Usual = slices.DeleteFunc(old.Usual, func(s Search) bool { return again("costs", s.Entry) })
	r.Searches = slices.DeleteFunc(old.Searches, func(s Search) bool {
		return again(map[bool]string{true: "costs", false: "bugs"}[s.Budget == 0], s.Entry)
	})
	measured := func(c Control) bool { return only.MatchString(c.Entry) }
	if i := slices.IndexFunc(old.Controls, measured); i >= 0 && !all && strings.Contains(parts, "mutants") {
		return nil, fmt.Errorf("the mutants of %s were measured before, measure those of all entries", old.Controls[i].Entry)
	}
	r.Controls = slices.DeleteFunc(old.Controls, func(c Control) bool { return again("alarms", c.Entry) })
	if !strings.Contains(parts, "mutants") || !all {
		r.Killed, r.Survivors = old.Killed, old.Survivors
	}
	return r, nil
}

// hasAll reports whether the report has measurements of each part.
func (r *Report) hasAll() bool {
	long := slices.ContainsFunc(r.Searches, func(s Search) bool { return s.Budget > 0 })
	return !r.Interrupted && long && len(r.Usual) > 0 && len(r.Pairs) > 0 && len(r.Controls) == r.Entries && r.Killed > 0
}

// Add calls a function that changes the report.
func (r *Report) Add(change func(*Report)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(r)
}

// Judge compares the measurements with the targets, and sorts the report.
func (r *Report) Judge() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Complete = r.hasAll()
	slices.SortStableFunc(r.Searches, func(a, b Search) int {
		return cmp.Or(cmp.Compare(a.Entry, b.Entry), cmp.Compare(a.Budget, b.Budget), cmp.Compare(b.Style, a.Style),
			cmp.Compare(a.Seed, b.Seed))
	})
	slices.SortFunc(r.Controls, func(a, b Control) int { return cmp.Compare(a.Entry, b.Entry) })
	slices.SortFunc(r.Survivors, func(a, b mutation.Result) int { return cmp.Compare(a.Name, b.Name) })
	r.Bars = nil
	r.judgeSearches()
	r.judgeControls()
	r.judgeMutants()
	r.judgeUsual()
	r.judgePairs()
	if o := r.Operators; o.Controllers > 0 {
		r.bar("controllers of public operators", "", true, "%d of %d modules: %d certificates, %d findings", o.Controllers,
			o.Modules, o.Certificates, o.Controllers-o.Certificates)
	}
	if len(r.Speed) > 0 {
		r.bar("schedules per second and core, ten calls", "≥ 5000 called directly, ≥ 2500 by a controller",
			r.Speed[direct] >= 5000 && r.Speed[controller] >= 2500, "%.0f and %.0f", r.Speed[direct], r.Speed[controller])
	}
	if r.Lines > 0 {
		r.bar("lines to put a reconciler under test", "≤ 15", r.Lines <= 15, "%d", r.Lines)
	}
}

// Print writes the report as text: the targets, and then everything that misses its target.
func (r *Report) Print(w io.Writer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.Complete {
		fmt.Fprintln(w, "This report is not complete.")
	}
	fmt.Fprintf(w, "%d entries, %d with a bug; %s, %d CPUs\n", r.Entries, r.Buggy, r.Go, r.CPUs)
	var days []string
	for _, part := range slices.Sorted(maps.Keys(r.Measured)) {
		days = append(days, part+" "+r.Measured[part])
	}
	fmt.Fprintf(w, "measured: %s\n", strings.Join(days, ", "))
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "what\twanted\tmeasured\t")
	for _, b := range r.Bars {
		met := "yes"
		switch {
		case b.Wanted == "":
			met = ""
		case !b.Met:
			met = "NO"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", b.What, b.Wanted, b.Measured, met)
	}
	_ = table.Flush()
	for _, line := range r.negatives() {
		fmt.Fprintln(w, line)
	}
}

// negatives lists everything that misses its target.
func (r *Report) negatives() []string {
	var lines []string
	for _, s := range r.Searches {
		if !s.Found {
			lines = append(
				lines, fmt.Sprintf(
					"not found: %s (%s, %d faults, seed %d, %d schedules)", s.Entry, s.Style, s.Faults, s.Seed, s.Schedules,
				),
			)
		} else if s.Shrunk > s.Faults {
			lines = append(lines, fmt.Sprintf("found with %d faults instead of %d: %s", s.Shrunk, s.Faults, s.Entry))
		}
	}
	for _, s := range r.Usual {
		if s.Found {
			lines = append(lines, fmt.Sprintf("false alarm: %s (%s): %s", s.Entry, s.Style, s.Failure))
		}
	}
	for _, p := range r.Pairs {
		if !p.Found {
			lines = append(lines, fmt.Sprintf("not found: %s (%s)", p.Entry, p.Family))
		}
		if p.Alarm != "" {
			lines = append(lines, fmt.Sprintf("false alarm: %s (%s): %s", p.Entry, p.Family, p.Alarm))
		}
	}
	for _, c := range r.Controls {
		if c.Alarm != "" {
			lines = append(lines, fmt.Sprintf("false alarm: %s: %s (%s)", c.Entry, c.Alarm, c.Replay))
		}
	}
	for _, m := range r.Survivors {
		if reason, known := mutation.Reasons[m.Name]; !m.Equivalent && known && reason.Missed {
			lines = append(lines, fmt.Sprintf("not killed: %s: %s", m.Name, reason.Why))
		}
	}
	return append(lines, mutation.Unexplained(r.Survivors, r.Complete)...)
}

// Read reads a report from a file and judges it again.
func Read(file string) (*Report, error) {
	encoded, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r := &Report{}
	if err := json.Unmarshal(encoded, r); err != nil {
		return nil, err
	}
	r.Judge()
	return r, nil
}

func median[T cmp.Ordered](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// timelineLines is the number of lines of a timeline with content, without its header.
func timelineLines(timeline string) int { return max(strings.Count(timeline, "\n")-1, 0) }
