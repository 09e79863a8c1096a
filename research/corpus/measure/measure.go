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
	"testing"
	"time"

	"trueup.dev/converge"
	"trueup.dev/research/corpus"
	"trueup.dev/research/corpus/mutation"
)

// Default returns the default options of a run.
func Default() converge.Options {
	return converge.Options{Seed: 1, Recoveries: 1000, Pairs: 1000, Requests: 20_000}
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

// Searches searches for the bug of an entry: once, or with three seeds if it needs two faults.
func Searches(t *testing.T, e corpus.Entry) ([]Search, error) {
	options := []converge.Options{Default()}
	if e.Faults > 1 {
		options = []converge.Options{minute(1), minute(2), minute(3)}
	}
	var found []Search
	for _, o := range options {
		report, err := converge.Check(t, e.Buggy(), o)
		if err != nil {
			return found, fmt.Errorf("%s: %w", e.Name, err)
		}
		s := Search{
			Entry: e.Name, Faults: e.Faults, Seed: o.Seed, Schedules: report.Certificate.Schedules,
			Seconds: report.Certificate.Elapsed.Seconds(),
		}
		if f := report.Failure; f != nil {
			s.Found, s.Oracle, s.Shrunk, s.Lines = true, string(f.Violation.Oracle), len(f.Faults), timelineLines(f.Timeline())
		}
		found = append(found, s)
	}
	return found, nil
}

// Usual measures the duration in seconds of the default run of the correct reconciler of an entry.
func Usual(t *testing.T, e corpus.Entry) (float64, error) {
	report, err := converge.Check(t, e.Correct(), Default())
	if err != nil {
		return 0, fmt.Errorf("%s: %w", e.Name, err)
	}
	if report.Failure != nil {
		return 0, fmt.Errorf("%s: %s", e.Name, report.Failure)
	}
	return report.Certificate.Elapsed.Seconds(), nil
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
