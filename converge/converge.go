// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"trueup.dev/internal/calledby"
)

// The flags of test binaries that import this package.
var (
	budgetFlag = flag.Duration(
		"converge.budget", 0, "how long to look for failures of several faults; 0 is for a fixed number of schedules",
	)
	pairsFlag  = flag.Bool("converge.pairs", false, "try all pairs of faults")
	randomFlag = flag.Int("converge.random", 0, "how many random schedules to try")
	seedFlag   = flag.Uint64(
		"converge.seed", 1, "seed of what is chosen by chance; schedules that are replayed have their own",
	)
	replayFlag = flag.String("converge.replay", "", "a schedule to replay, as a failure prints it")
	htmlFlag   = flag.String(
		"converge.html", "", "an .html file for the page of a failure, or a directory with one for each test",
	)
)

// Options tell how much to try.
type Options struct {
	// Budget ends the search for failures of several faults. The default is no limit of time. Single faults are always
	// tried, all of them.
	Budget time.Duration
	// Recoveries is how many second faults on the way back from a first one are tried at most; -1 is for all.
	Recoveries int
	// Pairs is how many pairs of faults are tried, chosen by chance; -1 is for all.
	Pairs int
	// Requests has Recoveries and Pairs be fewer where runs are long, so that all runs for either make about so many
	// requests. 0 is for no limit.
	Requests int
	// Random is how many schedules of up to six faults are tried.
	Random int
	// Seed is that of what is chosen by chance.
	Seed uint64
}

// fewest is how many second faults and pairs are tried even if runs are long.
const fewest = 50

// limit makes of Requests what it means for runs of some length.
func (o *Options) limit(length int) {
	if o.Requests <= 0 {
		return
	}
	most := max(o.Requests/length, fewest)
	if o.Recoveries > 0 {
		o.Recoveries = min(o.Recoveries, most)
	}
	if o.Pairs > 0 {
		o.Pairs = min(o.Pairs, most)
	}
}

// DefaultOptions returns the options of Run, as flags change them: all single faults, 1,000 second faults on the way
// back, and 1,000 pairs, or as many of these as make 20,000 requests, which takes about a second. With the race
// detector, which makes runs ten times as long, it is a tenth of that.
func DefaultOptions() Options {
	some, requests := 1000, 20_000
	if raceDetector {
		some, requests = some/10, requests/10
	}
	o := Options{
		Budget: *budgetFlag, Recoveries: some, Pairs: some, Requests: requests, Random: *randomFlag, Seed: *seedFlag,
	}
	if *pairsFlag {
		o.Pairs = -1
	}
	if o.Budget > 0 {
		o.Recoveries, o.Pairs = -1, -1
		if o.Random == 0 {
			o.Random = 1 << 40
		}
	}
	return o
}

// Run proves that a reconciler converges: it tries every single fault at every point, and some combinations, and fails
// the test with the timeline of the first failure, shrunk to the fewest faults. A failure is saved below
// testdata/converge, and tried first next time. With the flag -converge.html it is also written as a page, see
// [Failure.HTML].
func Run(t *testing.T, s Scenario) {
	t.Helper()
	if *replayFlag != "" {
		replay(t, s, *replayFlag)
		return
	}
	p, err := newPlan(s)
	if err != nil {
		t.Fatal(err)
	}
	p.seed = *seedFlag
	if failure := p.replaySaved(t); failure != nil {
		p.fail(t, failure)
		return
	}
	report := p.check(t, DefaultOptions())
	if report.Failure != nil {
		p.fail(t, report.Failure)
		return
	}
	t.Log(p.certificate(report))
}

// Check is Run that does not fail a test, for programs that want to know.
func Check(t *testing.T, s Scenario, o Options) (*Report, error) {
	p, err := newPlan(s)
	if err != nil {
		return nil, err
	}
	p.seed = o.Seed
	return p.check(t, o), nil
}

func (p *plan) check(t *testing.T, o Options) *Report {
	calledby.Controller() // outside of any bubble
	report := explore(t, p, o)
	if report.Failure != nil {
		p.shrink(t, report.Failure)
		p.tell(t, report.Failure)
		report.Failure.tried = &report.Certificate
	}
	return report
}

// certificate formats what was tried, and what was left out.
func (p *plan) certificate(report *Report) string {
	lines := []string{report.Certificate.String()}
	if _, off := p.Off[OracleAdvice]; !off {
		for _, advice := range report.Certificate.Advice {
			lines = append(lines, "advice: "+advice)
		}
	}
	return strings.Join(append(lines, report.Certificate.LeftOut...), "\n")
}

// leftOut lists what was left out, and why.
func (p *plan) leftOut() []string {
	var lines []string
	for _, oracle := range allOracles {
		if reason, off := p.Off[oracle]; off {
			lines = append(lines, fmt.Sprintf("without %s: %s", oracle, reason))
		}
	}
	for _, fault := range allFaults {
		if reason, without := p.Without[fault]; without {
			lines = append(lines, fmt.Sprintf("without %s: %s", fault, reason))
		}
	}
	return lines
}

// fail fails the test, and saves the failure.
func (p *plan) fail(t *testing.T, f *Failure) {
	t.Helper()
	saved := ""
	if len(f.schedule) > 0 {
		if file, err := save(t, f); err != nil {
			saved = fmt.Sprintf("the schedule cannot be saved: %v\n", err)
		} else {
			saved = "saved in " + file + "\n"
		}
	}
	t.Errorf("%s%s%sreplay: %s", f, saved, page(t, f), f.command())
}

// command is what replays the failure.
func (f *Failure) command() string {
	return fmt.Sprintf(
		"go test -run '^%s$' -converge.replay='%s'", strings.ReplaceAll(regexp.QuoteMeta(f.test), "/", "$/^"), f.Replay,
	)
}

// folder is where the schedules of a test are saved.
func folder(t *testing.T) string {
	return filepath.Join("testdata", "converge", filepath.FromSlash(t.Name()))
}

func save(t *testing.T, f *Failure) (string, error) {
	sum := sha256.Sum256([]byte(f.Replay))
	file := filepath.Join(folder(t), hex.EncodeToString(sum[:6])+".sched")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return "", err
	}
	return file, os.WriteFile(file, []byte("# "+firstLine(f.Violation.String())+"\n"+f.Replay+"\n"), 0o644)
}

func firstLine(s string) string {
	first, _, _ := strings.Cut(s, "\n")
	return first
}

// replaySaved tries what has failed before.
func (p *plan) replaySaved(t *testing.T) (failed *Failure) {
	// Not with a pattern, because names of tests may look like one.
	entries, err := os.ReadDir(folder(t))
	if err != nil {
		return nil
	}
	var files []string
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) == ".sched" {
			files = append(files, filepath.Join(folder(t), entry.Name()))
		}
	}
	if len(files) == 0 {
		return nil
	}
	calledby.Controller()
	defer func(seed uint64) {
		if failed == nil {
			p.seed = seed
		}
	}(p.seed)
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(content)) {
			if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			s, seed, err := decodeSchedule(line)
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if p.reference == nil || p.seed != seed {
				p.seed = seed
				if _, ok := p.refer(t); !ok {
					t.Logf("%s: with its seed the run without faults fails", file)
					return nil // which the exploration reports, if it does so with any seed
				}
			}
			if failure := p.failure(t, file, s); failure != nil {
				return failure
			}
		}
	}
	return nil
}

// failure returns what the schedule of a file violates.
func (p *plan) failure(t *testing.T, file string, s schedule) *Failure {
	o := p.execute(t, s, p.usual(), nil)
	if o.injected < len(s) && len(o.violations) == 0 {
		t.Logf(
			"%s: only %d of %d faults come true: the scenario or the reconciler has changed, and the file says nothing any more",
			file,
			o.injected,
			len(s),
		)
	}
	v, ok := o.violation()
	if !ok {
		return nil
	}
	f := &Failure{Violation: v, schedule: s}
	p.tell(t, f)
	return f
}

// replay makes one run, and shows it.
func replay(t *testing.T, s Scenario, encoded string) {
	t.Helper()
	decoded, seed, err := decodeSchedule(encoded)
	if err != nil {
		t.Fatal(err)
	}
	p, err := newPlan(s)
	if err != nil {
		t.Fatal(err)
	}
	p.seed = seed
	calledby.Controller()
	if reference, ok := p.refer(t); !ok && len(decoded) > 0 {
		t.Errorf("without faults: %s", reference.violations[0])
		return
	}
	f := &Failure{schedule: decoded}
	log := &timeline{}
	o := p.execute(t, decoded, p.usual(), log)
	f.entries, f.arrivals, f.hits = log.entries, log.arrivals, log.hits
	fmt.Print(f.full()) // also without -v
	if o.injected < len(decoded) {
		t.Errorf("only %d of %d faults came true: the scenario or the reconciler has changed since", o.injected, len(decoded))
	}
	for _, v := range o.violations {
		t.Error(v)
	}
	if v, ok := o.violation(); ok {
		f.Violation = v
		p.explain(t, f)
		if line := page(t, f); line != "" {
			t.Log(line)
		}
	}
}
