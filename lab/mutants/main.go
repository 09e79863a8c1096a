// SPDX-License-Identifier: Apache-2.0

// Command mutants makes mistakes in the source of trueup's packages, one at a time, and measures which tests find them.
// Run it before and after a change of tests: a mutant that a test killed before must still be killed.
//
//	cd lab
//	go run ./mutants
//	go run ./mutants -tests own,internal/tests/convergence,docs,examples/website/... -mutants 3,17
//
// The sample testdata/sample.txt has about 20 mutants each of reconcilers, operator and tracker, and the test that
// killed each. A mutant is identified by its file, its function, the kind of mutation and the number of the place in
// the function, not by its line. The command fails if a mutant of the sample no longer exists, or if one survives that
// the sample marks as killed by a package of -tests. With -update it records who killed the mutants that it ran. With
// -choose it writes a new sample, and runs nothing.
//
// All mutants are compiled at once, into a clone of the repository: each place calls the package in schema, which is
// active at one place only, the one with the number in the variable TRUEUP_MUTANT. Therefore each test binary is built
// once. A run without a mutant must pass. It also records which places it reaches: a package is not run for a mutant
// that its tests do not reach. A test binary that takes three times as long as without a mutant, and 20 seconds more,
// counts as a failure.
//
// Some survivors are equivalent to the original. Judge them by hand.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// settings are the flags.
type settings struct {
	module  string
	sample  string
	work    string
	commit  string
	choose  string
	count   int
	seed    uint64
	tests   string
	slow    string
	mutants string
	all     bool
	update  bool
}

func main() {
	var s settings
	flag.StringVar(&s.module, "module", "..", "`directory` of the module trueup.dev")
	flag.StringVar(&s.sample, "sample", "mutants/testdata/sample.txt", "`file` of the mutants")
	flag.StringVar(&s.work, "work", "", "`directory` of the clone, the binaries and their output; default: temporary")
	flag.StringVar(&s.commit, "commit", "HEAD", "`commit` to test")
	flag.StringVar(&s.choose, "choose", "", "write a new sample of these `packages`, separated by commas")
	flag.IntVar(&s.count, "count", 20, "`number` of mutants to choose in each package")
	flag.Uint64Var(&s.seed, "seed", 1, "`seed` of the choice")
	flag.StringVar(&s.tests, "tests", "own,reconcilers,operator,tracker",
		"`packages` to test, in this order; own is the package of the mutant")
	flag.StringVar(&s.slow, "slow", "^(TestHeapIsFlat|TestSchedules)$", "`pattern` of tests that run after the others")
	flag.StringVar(&s.mutants, "mutants", "", "`numbers` of the mutants to run, separated by commas; default: all")
	flag.BoolVar(&s.all, "all", false, "run all tests of all packages, even after one has killed the mutant")
	flag.BoolVar(&s.update, "update", false, "record in the sample which test killed each mutant")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := s.run(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func (s settings) run(ctx context.Context, out io.Writer) error {
	if s.work == "" {
		work, err := os.MkdirTemp("", "mutants")
		if err != nil {
			return err
		}
		defer os.RemoveAll(work)
		s.work = work
	}
	if s.choose != "" {
		return s.chooseSample(ctx)
	}
	sample, err := readSample(s.sample)
	if err != nil {
		return err
	}
	numbers, err := s.numbers(len(sample))
	if err != nil {
		return err
	}
	t, err := newTree(ctx, s.module, s.commit, s.work)
	if err != nil {
		return err
	}
	if err := t.mutate(ctx, sample); err != nil {
		return err
	}
	results, err := s.runMutants(ctx, t, sample, numbers, out)
	if err != nil {
		return err
	}
	lost := summarize(out, sample, results, t.order)
	if s.update {
		for _, r := range results {
			sample[r.number-1].Killer = strings.Join(r.killers, " ")
		}
		return writeSample(s.sample, sample)
	}
	return lost
}

// chooseSample writes a new sample.
func (s settings) chooseSample(ctx context.Context) error {
	var sample []mutant
	for _, pkg := range strings.Split(s.choose, ",") {
		points, err := pointsOf(ctx, s.module, pkg)
		if err != nil {
			return err
		}
		sample = append(sample, choose(points, s.count, s.seed)...)
	}
	return writeSample(s.sample, sample)
}

// numbers returns the mutants to run.
func (s settings) numbers(count int) ([]int, error) {
	var numbers []int
	if s.mutants == "" {
		for n := 1; n <= count; n++ {
			numbers = append(numbers, n)
		}
		return numbers, nil
	}
	for _, text := range strings.Split(s.mutants, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > count {
			return nil, fmt.Errorf("mutant %q is not a number from 1 to %d", text, count)
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

// result is the outcome of one mutant.
type result struct {
	number  int
	killers []string // package and test, separated by a colon
}

// runMutants runs the tests: each package for all mutants that have survived so far, and at last the slow tests.
func (s settings) runMutants(
	ctx context.Context, t *tree, sample []mutant, numbers []int, out io.Writer,
) ([]result, error) {
	results := make([]result, len(numbers))
	ran := make(map[string]bool)
	for _, c := range []choice{{"quick", "-test.skip=" + s.slow}, {"slow", "-test.run=" + s.slow}} {
		for _, pattern := range strings.Split(s.tests, ",") {
			for i, number := range numbers {
				r := &results[i]
				r.number = number
				p := pattern
				if p == "own" {
					p = filepath.Dir(sample[number-1].File)
				}
				packages, err := t.packages(ctx, p)
				if err != nil {
					return nil, err
				}
				for _, pkg := range packages {
					run := fmt.Sprintln(number, pkg, c.name)
					if ran[run] || len(r.killers) > 0 && !s.all {
						continue
					}
					ran[run] = true
					if err := s.kill(ctx, t, pkg, c, r, out); err != nil {
						return nil, err
					}
				}
			}
		}
	}
	return results, nil
}

// kill runs a part of the tests of a package with a mutant, and adds those that fail to the result.
func (s settings) kill(ctx context.Context, t *tree, pkg string, c choice, r *result, out io.Writer) error {
	b, err := t.binary(ctx, pkg, c, out)
	if err != nil || !b.reached[r.number] {
		return err
	}
	tests, err := t.run(ctx, b, r.number, !s.all)
	for _, test := range tests {
		r.killers = append(r.killers, pkg+":"+test)
		fmt.Fprintf(out, "%d is killed by %s:%s\n", r.number, pkg, test)
	}
	return err
}

// String returns who killed the mutant.
func (r result) String() string {
	if len(r.killers) == 0 {
		return "survived"
	}
	return strings.Join(r.killers, " ")
}

// summarize prints the results, how many mutants each package killed, and the survivors. It returns an error if a
// mutant survived that one of the packages, which are those that ran, killed before.
func summarize(out io.Writer, sample []mutant, results []result, packages []string) error {
	killed := make(map[string]int)
	var survivors []result
	for _, r := range results {
		m := sample[r.number-1]
		fmt.Fprintf(out, "%d\t%s:%d\t%s\t%s\t%s\n", r.number, m.File, m.line, m.Kind, m.Text, r)
		if len(r.killers) == 0 {
			survivors = append(survivors, r)
			continue
		}
		pkg, _, _ := strings.Cut(r.killers[0], ":")
		killed[pkg]++
	}
	fmt.Fprintf(out, "\nkilled %d of %d\n", len(results)-len(survivors), len(results))
	for _, pkg := range packages {
		fmt.Fprintf(out, "%4d first by %s\n", killed[pkg], pkg)
	}
	var lost []error
	for _, r := range survivors {
		m := sample[r.number-1]
		fmt.Fprintf(out, "survivor %d: %s:%d %s: %s %s\n", r.number, m.File, m.line, m.Function, m.Kind, m.Text)
		if pkg, _, _ := strings.Cut(m.Killer, ":"); slices.Contains(packages, pkg) {
			lost = append(lost, fmt.Errorf("mutant %d survives, but was killed by %s", r.number, m.Killer))
		}
	}
	return errors.Join(lost...)
}
