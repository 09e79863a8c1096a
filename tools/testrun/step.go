// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gotest.tools/gotestsum/testjson"
)

// step is one run of go test.
type step struct {
	// name says what the step shows. It is the key of the time that the step took last.
	name string
	// module is the directory of a module, by default the root.
	module string
	// packages are patterns of packages, by default all of the module. Packages that match one of except are omitted.
	packages, except []string
	// flags are flags of go test. The time-out is 20 minutes by default.
	flags []string
	// args are flags of the test binary.
	args []string
	// env has additional variables.
	env []string
	// part is the part of the proofs that take longer. It is 0 for the steps that only run every night.
	part int
}

type stepResult struct {
	name      string
	wall, cpu time.Duration
	// cached reports whether results came from the cache.
	cached bool
}

type packageResult struct {
	name    string
	elapsed time.Duration
	cached  bool
}

func (s step) directory() string {
	if s.module == "" {
		return "."
	}
	return s.module
}

func (s step) arguments() []string {
	packages := s.packages
	if len(packages) == 0 {
		packages = []string{"./..."}
	}
	// Many tests wait for an API, therefore more of a package run in parallel than there are processors.
	return slices.Concat([]string{"-timeout", "20m", "-parallel", "4"}, s.flags, packages, s.args)
}

// run runs the step. The path of the control plane is binary. The packages that took longest
// last time come first. The events of go test -json are copied to events.
func (s step) run(
	ctx context.Context, root, binary string, last durations, out, events io.Writer,
) (stepResult, []packageResult, error) {
	result := stepResult{name: s.name}
	env := append(os.Environ(), "KUBE_CACHE_MUTATION_DETECTOR=true") // fails if a reconciler changes an object in a cache
	env = append(env, collectLess()...)
	env = append(env, s.env...)
	directory := filepath.Join(root, s.module)
	if s.module == "controlplane" {
		compiled, err := os.ReadFile(filepath.Join(root, "sandbox", "compilerflags.txt"))
		if err != nil {
			return result, nil, err
		}
		// With the flags of the control plane's binary, its packages are not compiled once more.
		flags := append([]string{os.Getenv("GOFLAGS")}, strings.Fields(string(compiled))...)
		env = append(env, "GOFLAGS="+strings.Join(flags, " "), "TRUEUP_CONTROLPLANE="+binary)
	}
	var err error
	if s.packages, err = listExcept(ctx, directory, s.packages, s.except); err != nil {
		return result, nil, err
	}
	// The go command tests packages in this order. If a long one came last, the others would not run beside it.
	slices.SortStableFunc(s.packages, func(a, b string) int { return cmp.Compare(last[b], last[a]) })
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, s.arguments()...)...)
	// go test ends its test binaries, which print what they were doing.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	cmd.Dir, cmd.Env = directory, env
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return result, nil, err
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return result, nil, err
	}
	started := time.Now()
	if err := cmd.Start(); err != nil {
		return result, nil, err
	}
	p := &printer{out: out, cached: map[string]bool{}}
	p.format = testjson.NewEventFormatter(out, "standard-quiet", testjson.FormatOptions{})
	execution, err := testjson.ScanTestOutput(testjson.ScanConfig{
		Stdout: io.TeeReader(stdout, events), Stderr: stderr, Handler: p, IgnoreNonJSONOutputLines: true,
	})
	if err != nil {
		return result, nil, errors.Join(err, cmd.Wait())
	}
	err = cmd.Wait()
	result.wall = time.Since(started)
	result.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	var packages []packageResult
	for _, name := range execution.Packages() {
		if name == "" { // errors of the compiler
			continue
		}
		result.cached = result.cached || p.cached[name]
		packages = append(packages, packageResult{name, execution.Package(name).Elapsed(), p.cached[name]})
	}
	testjson.PrintSummary(out, execution, testjson.SummarizeFailed|testjson.SummarizeErrors)
	if err != nil {
		return result, packages, errors.Join(errTests, err)
	}
	return result, packages, nil
}

// collectLess returns variables with which the garbage collector runs less often, as long as a process stays small.
// With the race detector, tests spend a quarter of their processor time on it. What the user has set stays.
func collectLess() []string {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return nil
	}
	return []string{"GOGC=400", "GOMEMLIMIT=1GiB"}
}

// printer prints the result of each package, and the output of each failed test as soon as it has failed.
type printer struct {
	out    io.Writer
	format testjson.EventFormatter
	cached map[string]bool
}

// Event implements [testjson.EventHandler].
func (p *printer) Event(event testjson.TestEvent, execution *testjson.Execution) error {
	if event.PackageEvent() {
		if strings.Contains(event.Output, "\t(cached)") {
			p.cached[event.Package] = true
		}
		return p.format.Format(event, execution)
	}
	if event.Action == testjson.ActionFail {
		pkg := execution.Package(event.Package)
		for _, line := range pkg.OutputLines(pkg.LastFailedByName(event.Test)) {
			fmt.Fprint(p.out, line)
		}
	}
	return nil
}

// Err implements [testjson.EventHandler]. It prints what the go command prints besides the results, such as downloads
// and errors of the compiler.
func (p *printer) Err(text string) error {
	_, err := fmt.Fprintln(p.out, text)
	return err
}

// listExcept returns the packages that match one of patterns and none of except.
func listExcept(ctx context.Context, directory string, patterns, except []string) ([]string, error) {
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	all, err := goList(ctx, directory, patterns)
	if err != nil {
		return nil, err
	}
	if len(except) == 0 {
		return all, nil
	}
	excluded, err := goList(ctx, directory, except)
	if err != nil {
		return nil, err
	}
	omit := map[string]bool{}
	for _, name := range excluded {
		omit[name] = true
	}
	var chosen []string
	for _, name := range all {
		if !omit[name] {
			chosen = append(chosen, name)
		}
	}
	return chosen, nil
}

func goList(ctx context.Context, directory string, patterns []string) ([]string, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"list"}, patterns...)...)
	cmd.Dir, cmd.Stderr = directory, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%v: %w", cmd, err)
	}
	return strings.Fields(string(out)), nil
}
