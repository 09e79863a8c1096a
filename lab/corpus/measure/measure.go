// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"trueup.dev/converge"
	"trueup.dev/lab/corpus"
	"trueup.dev/lab/corpus/mutation"
)

// Default returns the default options of a run.
func Default() converge.Options {
	return converge.Options{Seed: 1, SingleRequests: 500_000, Recoveries: 1000, Pairs: 1000, Requests: 20_000}
}

// minute returns options that search for bugs of several faults for 60 seconds.
func minute(seed uint64) converge.Options {
	return converge.Options{Seed: seed, Recoveries: -1, Pairs: -1, Random: 1 << 40, Budget: time.Minute}
}

// thorough returns options for correct reconcilers.
func thorough() converge.Options {
	return converge.Options{Seed: 1, Recoveries: -1, Pairs: -1, Random: 10_000}
}

// longer returns options for mutants that the default does not find.
func longer() converge.Options {
	return converge.Options{Seed: 1, Recoveries: 1500, Pairs: 1500, Random: 1500}
}

// MutantOf searches for a failure of a mutant with the default options, and then with longer if it finds none.
func MutantOf(t *testing.T, m mutation.Mutant) (mutation.Result, error) {
	result, err := m.Check(t, Default())
	if err == nil && !result.Killed && !result.Equivalent {
		err = m.Examine(t, &result, longer())
	}
	return result, err
}

// The ways in which reconcilers are called.
const (
	direct     = "direct"
	controller = "controller"
)

// styles returns the scenario of an entry, by the way in which the reconciler is called.
func styles(scenario func() converge.Scenario) map[string]converge.Scenario {
	found := map[string]converge.Scenario{controller: ByController(scenario())}
	if s := scenario(); s.Setup == nil {
		found[direct] = s
	}
	return found
}

// Defaults performs the default runs of an entry: called directly, and by a controller. The first result has those with
// the bug, if the entry has one, and the second those without it. It must not run in parallel.
func Defaults(t *testing.T, e corpus.Entry) (buggy, correct []Search, err error) {
	for _, style := range []string{direct, controller} {
		if e.Buggy != nil {
			if s, ok := styles(e.Buggy)[style]; ok {
				found, err := search(t, s, Default())
				if err != nil {
					return nil, nil, fmt.Errorf("%s: %w", e.Name, err)
				}
				found.Entry, found.Style, found.Faults = e.Name, style, e.Faults
				buggy = append(buggy, found)
			}
		}
		if s, ok := styles(e.Correct)[style]; ok {
			found, err := search(t, s, Default())
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", e.Name, err)
			}
			found.Entry, found.Style = e.Name, style
			correct = append(correct, found)
		}
	}
	return buggy, correct, nil
}

// LargeRun performs the default run of a scenario with more than 300 injection points, by a controller.
func LargeRun(t *testing.T) (Search, error) {
	found, err := search(t, ByController(corpus.Large(20)), Default())
	found.Entry, found.Style = "large", controller
	return found, err
}

// Searches searches for the bug of an entry for a minute, with each of three seeds.
func Searches(t *testing.T, e corpus.Entry) ([]Search, error) {
	var found []Search
	for seed := range uint64(3) {
		s, err := search(t, e.Buggy(), minute(seed+1))
		if err != nil {
			return found, fmt.Errorf("%s: %w", e.Name, err)
		}
		s.Entry, s.Style, s.Faults = e.Name, direct, e.Faults
		found = append(found, s)
	}
	return found, nil
}

// search searches for a failure.
func search(t *testing.T, scenario converge.Scenario, o converge.Options) (Search, error) {
	before := processorTime()
	report, err := converge.Check(t, scenario, o)
	if err != nil {
		return Search{}, err
	}
	done := report.Certificate
	s := Search{
		Seed: o.Seed, Budget: o.Budget.Seconds(), Points: done.Points, Singles: done.Singles, Left: done.SinglesLeft,
		Schedules: done.Schedules, Seconds: done.Elapsed.Seconds(), Processor: (processorTime() - before).Seconds(),
	}
	if f := report.Failure; f != nil {
		s.Found, s.Oracle, s.Shrunk, s.Lines = true, string(f.Violation.Oracle), len(f.Faults), timelineLines(f.Timeline())
		s.Failure = f.Violation.String() + " " + f.Replay
	}
	return s, nil
}

// processorTime is the processor time of this process so far.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// ControlOf searches for a failure of the correct reconciler of an entry.
func ControlOf(t *testing.T, e corpus.Entry) (Control, error) {
	c := Control{Entry: e.Name}
	report, err := converge.Check(t, e.Correct(), thorough())
	if err != nil {
		return c, fmt.Errorf("%s: %w", e.Name, err)
	}
	done := report.Certificate
	c.Singles, c.Pairs, c.Random, c.Schedules, c.Seconds =
		done.Singles, done.Pairs, done.Random, done.Schedules, done.Elapsed.Seconds()
	if f := report.Failure; f != nil {
		c.Alarm, c.Replay = f.Violation.String(), f.Replay
	}
	return c, nil
}

// schedulesPerSecond matches the result of the benchmark of package converge for one way of calling a reconciler.
var schedulesPerSecond = regexp.MustCompile(`BenchmarkSchedule/(\w+?)(?:-\d+)?\s.*?([\d.]+) schedules/s/core`)

// Speed runs the benchmark of package converge in its own process.
func Speed(ctx context.Context) (map[string]float64, error) {
	output, err := exec.CommandContext(
		ctx, "go", "test", "trueup.dev/converge", "-run", "^$", "-bench", "^BenchmarkSchedule$", "-benchtime", "5s",
	).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, output)
	}
	speed := map[string]float64{}
	for _, match := range schedulesPerSecond.FindAllStringSubmatch(string(output), -1) {
		if speed[match[1]], err = strconv.ParseFloat(match[2], 64); err != nil {
			return nil, err
		}
	}
	if len(speed) == 0 {
		return nil, fmt.Errorf("the output of the benchmark has no schedules: %s", output)
	}
	return speed, nil
}

// Lines counts the lines of a function in a Go file.
func Lines(file, function string) (int, error) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, nil, 0)
	if err != nil {
		return 0, err
	}
	for _, decl := range parsed.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Name.Name == function {
			return files.Position(f.End()).Line - files.Position(f.Pos()).Line + 1, nil
		}
	}
	return 0, errors.New(file + ": no function " + function)
}
