// SPDX-License-Identifier: Apache-2.0

// Command testrun runs the tests of all modules of this repository in steps. It prints how long each step took last
// time, the failures as they happen, and at the end the slowest packages. The Makefile calls it:
//
//	make test                                  the steps that everybody runs
//	make test PKG=./tracker/... RUN=TestFoo    the tests of some packages, of whichever module
//	make test-all                              the same, and the proofs that take longer
//	make test-part                             one fifth of these proofs, which depends on the commit
//
// All steps run, even after one has failed. The exit status is 1 if a test has failed, and 2 if the arguments are
// wrong.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// errTests is returned if tests have failed. Their output is printed before.
var errTests = errors.New("tests failed")

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("testrun", flag.ContinueOnError)
	flags.SetOutput(stderr)
	all := flags.Bool("all", false, "also run the proofs that take longer")
	part := flags.String("part", "", "with -all: of these proofs, only the ones of this part, 1 to "+strconv.Itoa(parts)+
		`, or "commit" for the part that is due at the current commit`)
	pattern := flags.String("run", "", "run only the tests that match this regular expression, with -run of go test")
	testFlags := flags.String("flags", "", "further flags of go test, separated by spaces")
	jsonFile := flags.String("jsonfile", "", "also write the events of go test -json to this file")
	list := flags.Bool("list", false, "print the steps instead of running them")
	flags.Usage = func() {
		fmt.Fprintln(stderr, "usage: testrun [flags] [packages]")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	root, err := rootDirectory(ctx)
	if err != nil {
		fmt.Fprintln(stderr, "error:", err)
		return 2
	}
	steps, err := choose(ctx, root, *all, *part, flags.Args())
	if err != nil {
		fmt.Fprintln(stderr, "error:", err)
		return 2
	}
	for i := range steps {
		steps[i].flags = append(steps[i].flags, strings.Fields(*testFlags)...)
	}
	if *pattern != "" {
		if steps, err = matching(steps, *pattern); err != nil {
			fmt.Fprintln(stderr, "error:", err)
			return 2
		}
	}
	if *list {
		for _, s := range steps {
			fmt.Fprintf(stdout, "%s: go test %s\n", s.directory(), strings.Join(s.arguments(), " "))
		}
		return 0
	}
	r := runner{
		root: root, out: stdout, events: io.Discard, close: func() error { return nil }, last: readDurations(),
	}
	if *jsonFile != "" {
		file, err := os.Create(*jsonFile)
		if err != nil {
			fmt.Fprintln(stderr, "error:", err)
			return 2
		}
		r.events, r.close = file, file.Close
	}
	err = errors.Join(r.runAll(ctx, steps), r.close())
	r.summarize()
	if err != nil {
		fmt.Fprintln(stderr, "error:", err)
		return 1
	}
	return 0
}

// rootDirectory returns the root of the repository.
func rootDirectory(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		return "", fmt.Errorf("git rev-parse: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// choose returns the steps for the flags and packages of the command line.
func choose(ctx context.Context, root string, all bool, part string, packages []string) ([]step, error) {
	switch {
	case len(packages) > 0 && (all || part != ""), part != "" && !all:
		return nil, errors.New("-all excludes packages, and -part requires -all")
	case len(packages) > 0:
		return stepsOf(root, packages)
	case !all:
		return everybody(), nil
	case part == "":
		return append(everybody(), longer()...), nil
	}
	number, err := strconv.Atoi(part)
	if part == "commit" {
		number, err = partOfCommit(ctx, root)
	}
	if err != nil || number < 1 || number > parts {
		return nil, errors.Join(fmt.Errorf("-part must be %q or 1 to %d, got %q", "commit", parts, part), err)
	}
	return slices.DeleteFunc(longer(), func(s step) bool { return s.part != number }), nil
}

// partOfCommit returns the part for the number of commits in the history. Five commits in a row run all parts.
func partOfCommit(ctx context.Context, root string) (int, error) {
	cmd := exec.CommandContext(ctx, "git", "rev-list", "--count", "HEAD")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("git rev-list: %w", err)
	}
	commits, err := strconv.Atoi(strings.TrimSpace(string(out)))
	return commits%parts + 1, err
}

// runner runs steps and collects their durations.
type runner struct {
	root     string
	out      io.Writer
	events   io.Writer // receives the events of go test -json
	close    func() error
	last     durations
	steps    []stepResult
	packages []packageResult
}

func (r *runner) runAll(ctx context.Context, steps []step) error {
	binary, err := r.buildControlPlane(ctx)
	if err != nil {
		return err
	}
	failed := false
	for i, s := range steps {
		fmt.Fprintf(r.out, "\n== %d of %d: %s%s\n", i+1, len(steps), s.name, r.last.of(s.name))
		result, packages, err := s.run(ctx, r.root, binary, r.last, r.out, r.events)
		r.packages = append(r.packages, packages...)
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		if err != nil && !errors.Is(err, errTests) {
			return err
		}
		failed = failed || err != nil
		r.steps = append(r.steps, result)
		if err == nil && !result.cached {
			r.last[s.name] = result.wall.Seconds()
		}
		for _, p := range packages {
			if !p.cached && p.elapsed > 0 { // 0 if it was interrupted
				r.last[p.name] = p.elapsed.Seconds()
			}
		}
		r.last.save()
	}
	if failed {
		return errTests
	}
	return nil
}

// buildControlPlane builds the control plane unless it exists, and returns its path.
func (r *runner) buildControlPlane(ctx context.Context) (string, error) {
	fmt.Fprintf(r.out, "== the control plane, unless it is built%s\n", r.last.of("control plane"))
	cmd := exec.CommandContext(ctx, "go", "run", "./cmd/trueup", "build")
	cmd.Dir, cmd.Stderr = r.root, r.out
	started := time.Now()
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%v: %w", cmd, err)
	}
	result := stepResult{name: "control plane", wall: time.Since(started)}
	result.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	r.steps = append(r.steps, result)
	r.last[result.name] = result.wall.Seconds()
	return strings.TrimSpace(string(out)), nil
}

// slowest is the number of packages that are listed at the end.
const slowest = 10

// summarize prints the time of each step and the slowest packages.
func (r *runner) summarize() {
	if len(r.steps) > 1 {
		w := tabwriter.NewWriter(r.out, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintf(r.out, "\n")
		fmt.Fprintf(w, "wall\tCPU\t\tstep\n")
		total := stepResult{name: "all steps"}
		for _, s := range r.steps {
			fmt.Fprintf(w, "%s\t%s\t\t%s\n", seconds(s.wall), seconds(s.cpu), s.name)
			total.wall, total.cpu = total.wall+s.wall, total.cpu+s.cpu
		}
		fmt.Fprintf(w, "%s\t%s\t\t%s\n", seconds(total.wall), seconds(total.cpu), total.name)
		w.Flush()
	}
	ran := slices.DeleteFunc(slices.Clone(r.packages), func(p packageResult) bool { return p.cached })
	slices.SortStableFunc(ran, func(a, b packageResult) int { return int(b.elapsed - a.elapsed) })
	if len(ran) > 1 {
		fmt.Fprintf(r.out, "\nslowest packages (%d ran, %d from the cache):\n", len(ran), len(r.packages)-len(ran))
		for _, p := range ran[:min(slowest, len(ran))] {
			fmt.Fprintf(r.out, "%8s  %s\n", seconds(p.elapsed), p.name)
		}
	}
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1fs", d.Seconds()) }
