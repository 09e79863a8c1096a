// SPDX-License-Identifier: Apache-2.0

package corpus_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"trueup.dev/lab/corpus"
	"trueup.dev/lab/corpus/measure"
	"trueup.dev/lab/corpus/mutation"
)

var (
	reportFlag = flag.Bool("corpus.report", false, "measure package converge with the corpus; takes up to an hour")
	jsonFlag   = flag.Bool("corpus.json", false, "print the report as JSON")
	outFlag    = flag.String("corpus.out", "", "a file for the report as JSON")
	onlyFlag   = flag.String("corpus.only", "", "a regular expression for the names of the entries that are measured")
	partsFlag  = flag.String("corpus.parts", "costs,others,bugs,alarms,mutants", "what is measured")
)

// TestReport measures package converge. It fails if a target is missed. If it is interrupted, it prints the results so
// far.
//
//	cd lab/corpus && go test -run '^TestReport$' -corpus.report -timeout 3h
//
// With -corpus.only and -corpus.out, it adds the measurements of some entries to a report.
func TestReport(t *testing.T) {
	if !*reportFlag {
		t.Skip("only with -corpus.report")
	}
	only, err := regexp.Compile(*onlyFlag)
	if err != nil {
		t.Fatal(err)
	}
	m := &measurement{only: only}
	buggy := slices.DeleteFunc(corpus.All(), func(e corpus.Entry) bool { return e.Buggy == nil })
	m.report, err = measure.Continue(*outFlag, *partsFlag, only, len(corpus.All()), len(buggy))
	if err != nil {
		t.Fatal(err)
	}
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-interrupted
		m.report.Add(func(r *measure.Report) { r.Interrupted = true })
		m.publish(t)
		os.Exit(1)
	}()
	for _, part := range []struct {
		name string
		do   func(*testing.T)
	}{{"costs", m.costs}, {"others", m.others}, {"bugs", m.bugs}, {"alarms", m.alarms}, {"mutants", m.mutants}} {
		if strings.Contains(*partsFlag, part.name) {
			if *onlyFlag == "" {
				m.report.Begin(part.name)
			}
			t.Run(part.name, part.do)
		}
	}
	m.publish(t)
	for _, bar := range m.report.Bars {
		if !bar.Met && bar.Wanted != "" {
			t.Errorf("%s: %s, want %s", bar.What, bar.Measured, bar.Wanted)
		}
	}
}

// measurement is a report in progress.
type measurement struct {
	only   *regexp.Regexp
	report *measure.Report
	begin  time.Time

	mu         sync.Mutex
	done, want int
}

// entries returns the selected entries.
func (m *measurement) entries(buggy bool) []corpus.Entry {
	var found []corpus.Entry
	for _, e := range corpus.All() {
		if m.only.MatchString(e.Name) && (e.Buggy != nil || !buggy) {
			found = append(found, e)
		}
	}
	return found
}

// publish prints the results.
func (m *measurement) publish(t *testing.T) {
	m.report.Judge()
	encoded, err := json.MarshalIndent(m.report, "", "  ")
	if err != nil {
		t.Error(err)
	}
	if *jsonFlag {
		fmt.Println(string(encoded))
	} else {
		m.report.Print(os.Stdout)
	}
	if *outFlag != "" {
		if err := os.WriteFile(*outFlag, append(encoded, '\n'), 0o644); err != nil {
			t.Error(err)
		}
	}
}

// each calls do for each of n items, with at most -parallel at a time.
func (m *measurement) each(t *testing.T, n int, name func(int) string, do func(t *testing.T, i int)) {
	m.mu.Lock()
	m.begin, m.done, m.want = time.Now(), 0, n
	m.mu.Unlock()
	part, _, _ := strings.Cut(strings.TrimPrefix(t.Name(), "TestReport/"), "/")
	for i := range n {
		t.Run(name(i), func(t *testing.T) {
			t.Parallel()
			do(t, i)
			m.progress(part)
		})
	}
}

// progress prints a line for each tenth of a part.
func (m *measurement) progress(part string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.done++; m.done*10/m.want > (m.done-1)*10/m.want {
		fmt.Fprintf(os.Stderr, "%s: %d of %d after %s\n", part, m.done, m.want, time.Since(m.begin).Round(time.Second))
	}
}

func (m *measurement) bugs(t *testing.T) {
	entries := slices.DeleteFunc(m.entries(true), func(e corpus.Entry) bool { return e.Faults < 2 })
	m.each(t, len(entries), func(i int) string { return entries[i].Name }, func(t *testing.T, i int) {
		found, err := measure.Searches(t, entries[i])
		if err != nil {
			t.Error(err)
		}
		m.report.Add(func(r *measure.Report) { r.Searches = append(r.Searches, found...) })
	})
}

func (m *measurement) alarms(t *testing.T) {
	entries := m.entries(false)
	m.each(t, len(entries), func(i int) string { return entries[i].Name }, func(t *testing.T, i int) {
		control, err := measure.ControlOf(t, entries[i])
		if err != nil {
			t.Error(err)
		}
		m.report.Add(func(r *measure.Report) { r.Controls = append(r.Controls, control) })
	})
}

func (m *measurement) mutants(t *testing.T) {
	var mutants []mutation.Mutant
	for _, e := range m.entries(false) {
		found, err := mutation.Of(t, e)
		if err != nil {
			t.Error(err)
		}
		mutants = append(mutants, found...)
	}
	m.each(t, len(mutants), func(i int) string { return mutants[i].Name() }, func(t *testing.T, i int) {
		result, err := measure.MutantOf(t, mutants[i])
		if err != nil {
			t.Error(err)
		}
		m.report.Add(func(r *measure.Report) {
			if result.Killed {
				r.Killed++
			} else {
				r.Survivors = append(r.Survivors, result)
			}
		})
	})
}

func (m *measurement) costs(t *testing.T) {
	if *onlyFlag == "" {
		m.costsInGeneral(t)
	}
	// Sequentially, as in a run of a single test.
	for _, e := range m.entries(false) {
		buggy, correct, err := measure.Defaults(t, e)
		if err != nil {
			t.Error(err)
		}
		m.report.Add(func(r *measure.Report) {
			r.Searches, r.Usual = append(r.Searches, buggy...), append(r.Usual, correct...)
		})
	}
}

// costsInGeneral measures the costs that do not depend on an entry.
func (m *measurement) costsInGeneral(t *testing.T) {
	speed, err := measure.Speed(t.Context())
	if err != nil {
		t.Error(err)
	}
	lines, err := measure.Lines("lines_test.go", "TestFrontend")
	if err != nil {
		t.Error(err)
	}
	m.report.Add(func(r *measure.Report) { r.Speed, r.Lines = speed, lines })
}

// others measures what is not about the entries of the corpus.
func (m *measurement) others(t *testing.T) {
	if *onlyFlag != "" {
		return
	}
	large, err := measure.LargeRun(t)
	if err != nil {
		t.Error(err)
	}
	pairs, err := measure.Pairs(t)
	if err != nil {
		t.Error(err)
	}
	public, err := measure.ReadOperators("../operators/results.json")
	if err != nil {
		t.Error(err)
	}
	m.report.Add(func(r *measure.Report) {
		r.Large, r.Pairs, r.Operators = large, pairs, public
	})
}
