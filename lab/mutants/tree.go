// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// schema is the package that mutated places call.
//
//go:embed schema/schema.go
var schema []byte

// tree is a clone of the repository with all mutants, and the test binaries built in it.
type tree struct {
	dir      string // of the clone
	work     string
	binaries map[string]*binary
	order    []string // the packages of binaries, as they were built
	matched  map[string][]string
}

// binary is the test binary of a package, and a choice of its tests.
type binary struct {
	pkg     string // relative to the module
	file    string
	name    string // of its output
	tests   string // the flag that chooses tests
	limit   time.Duration
	reached map[int]bool // the mutants that its tests reach
}

// choice is a part of the tests of a package.
type choice struct{ name, flag string }

func newTree(ctx context.Context, module, commit, work string) (*tree, error) {
	module, err := filepath.Abs(module)
	if err != nil {
		return nil, err
	}
	if work, err = filepath.Abs(work); err != nil {
		return nil, err
	}
	hash, err := command(ctx, module, "git", "rev-parse", "--verify", commit+"^{commit}")
	if err != nil {
		return nil, err
	}
	t := &tree{
		dir: filepath.Join(work, "trueup"), work: work,
		binaries: make(map[string]*binary), matched: make(map[string][]string),
	}
	if err := os.RemoveAll(t.dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(work, 0o700); err != nil {
		return nil, err
	}
	if _, err := command(ctx, module, "git", "clone", "--quiet", "--shared", "--no-checkout", ".", t.dir); err != nil {
		return nil, err
	}
	return t, t.git(ctx, "checkout", "--quiet", "--detach", strings.TrimSpace(string(hash)))
}

func (t *tree) git(ctx context.Context, args ...string) error {
	_, err := command(ctx, t.dir, "git", args...)
	return err
}

// mutate writes all mutants of the sample, and commits them: reset returns to this commit.
func (t *tree) mutate(ctx context.Context, sample []mutant) error {
	found := make([]bool, len(sample))
	files := map[string][]byte{filepath.Join("internal", "mutant", "mutant.go"): schema}
	var packages []string
	for _, m := range sample {
		packages = append(packages, filepath.Dir(m.File))
	}
	slices.Sort(packages)
	for _, pkg := range slices.Compact(packages) {
		s, err := load(ctx, t.dir, pkg)
		if err != nil {
			return err
		}
		for file, content := range s.mutated(sample, found) {
			files[file] = content
		}
	}
	var missing []error
	for i, m := range sample {
		if !found[i] {
			missing = append(missing, fmt.Errorf("mutant %d is not in the source: %s %s: %s %s",
				i+1, m.File, m.Function, m.Kind, m.Text))
		}
	}
	if len(missing) > 0 {
		return errors.Join(missing...)
	}
	for file, content := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(t.dir, file)), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(t.dir, file), content, 0o600); err != nil {
			return err
		}
	}
	if err := t.git(ctx, "add", "--all"); err != nil {
		return err
	}
	return t.git(ctx, "-c", "user.name=mutants", "-c", "user.email=mutants@trueup.dev", "-c", "commit.gpgsign=false",
		"commit", "--quiet", "--no-verify", "--message", "mutants")
}

// reset removes what a test wrote: converge saves failures, and tries them first in the next run.
func (t *tree) reset(ctx context.Context) error {
	if err := t.git(ctx, "reset", "--quiet", "--hard"); err != nil {
		return err
	}
	return t.git(ctx, "clean", "--quiet", "-ffd")
}

// packages returns the packages with tests that match the pattern.
func (t *tree) packages(ctx context.Context, pattern string) ([]string, error) {
	if packages, known := t.matched[pattern]; known {
		return packages, nil
	}
	output, err := command(ctx, t.dir, "go", "list", "-f",
		"{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}", "./"+pattern)
	if err != nil {
		return nil, err
	}
	for _, dir := range strings.Fields(string(output)) {
		pkg, err := filepath.Rel(t.dir, dir)
		if err != nil {
			return nil, err
		}
		t.matched[pattern] = append(t.matched[pattern], pkg)
	}
	return t.matched[pattern], nil
}

// binary returns the test binary of a package, with its quick tests or with those that match slow. At first it builds
// the binary, and runs it without a mutant.
func (t *tree) binary(ctx context.Context, pkg string, c choice, out io.Writer) (*binary, error) {
	name := strings.ReplaceAll(pkg, "/", "-")
	key := name + "." + c.name
	if b := t.binaries[key]; b != nil {
		return b, nil
	}
	b := &binary{pkg: pkg, file: filepath.Join(t.work, name+".test"), name: key, tests: c.flag}
	if !slices.Contains(t.order, pkg) {
		if _, err := command(ctx, t.dir, "go", "test", "-c", "-vet=off", "-o", b.file, "./"+pkg); err != nil {
			return nil, err
		}
		t.order = append(t.order, pkg)
	}
	t.binaries[key] = b
	return b, t.try(ctx, b, out)
}

// try runs a test binary without a mutant.
func (t *tree) try(ctx context.Context, b *binary, out io.Writer) error {
	b.limit, b.reached = 20*time.Minute, make(map[int]bool)
	record := filepath.Join(t.work, b.name+".reached")
	if err := os.WriteFile(record, nil, 0o600); err != nil {
		return err
	}
	start := time.Now()
	failed, err := t.run(ctx, b, 0, false, "TRUEUP_MUTANTS_REACHED="+record)
	if err != nil {
		return err
	}
	if len(failed) > 0 {
		return fmt.Errorf("%s fails without a mutant: %v; its output is in %s", b.name, failed, t.work)
	}
	took := time.Since(start)
	b.limit = 3*took + 20*time.Second
	content, err := os.ReadFile(record)
	if err != nil {
		return err
	}
	for _, line := range strings.Fields(string(content)) {
		number, err := strconv.Atoi(line)
		if err != nil {
			return err
		}
		b.reached[number] = true
	}
	fmt.Fprintf(out, "%s passes without a mutant in %.1fs, and reaches %d mutants\n",
		b.name, took.Seconds(), len(b.reached))
	return nil
}

// run runs a test binary with a mutant, and returns the tests that failed.
func (t *tree) run(ctx context.Context, b *binary, number int, failFast bool, environment ...string) ([]string, error) {
	log := filepath.Join(t.work, fmt.Sprintf("%s.%d.log", b.name, number))
	file, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // The process writes to it.
	// Programs that tests start might survive them: the test binary ends itself first, which names the test.
	limited, cancel := context.WithTimeout(ctx, b.limit+30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(limited, b.file, b.tests, "-test.v", fmt.Sprintf("-test.timeout=%s", b.limit),
		fmt.Sprintf("-test.failfast=%t", failFast))
	cmd.Dir = filepath.Join(t.dir, b.pkg)
	cmd.Stdout, cmd.Stderr = file, file
	cmd.Env = append(os.Environ(), fmt.Sprintf("TRUEUP_MUTANT=%d", number), "KUBE_CACHE_MUTATION_DETECTOR=true")
	cmd.Env = append(cmd.Env, environment...)
	failed := cmd.Run()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err := t.reset(ctx); err != nil {
		return nil, err
	}
	if failed == nil {
		return nil, nil
	}
	output, err := os.ReadFile(log)
	if err != nil {
		return nil, err
	}
	return failures(output), nil
}

var (
	failedTest  = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)
	runningTest = regexp.MustCompile(`running tests:\s+(\S+)`)
	startedTest = regexp.MustCompile(`(?m)^=== (?:RUN|CONT) +([^/\s]+)`)
)

// failures returns the tests that failed according to the output of a test binary: those that it names, or the test
// that ran when it ended.
func failures(output []byte) []string {
	var tests []string
	for _, found := range failedTest.FindAllSubmatch(output, -1) {
		tests = append(tests, string(found[1]))
	}
	if found := runningTest.FindSubmatch(output); found != nil {
		tests = append(tests, string(found[1])+"(time-out)")
	}
	if len(tests) > 0 {
		return tests
	}
	if found := startedTest.FindAllSubmatch(bytes.TrimSpace(output), -1); found != nil {
		return []string{string(found[len(found)-1][1]) + "(ended)"}
	}
	return []string{"(did not start)"}
}
