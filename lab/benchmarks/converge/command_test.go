// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"trueup.dev/lab/benchmarks/internal/report"
)

// execute runs the command and returns its exit code and output.
func execute(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	out, errs := strings.Builder{}, strings.Builder{}
	code = run(ctx, args, &out, &errs)
	return code, out.String(), errs.String()
}

func TestMistakes(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing", "file")
	for name, test := range map[string]struct {
		args []string
		want []string
	}{
		"workload": {
			[]string{"--workload", "diverge"},
			[]string{`--workload: unknown workload "diverge", must be one of all, converge, apply, childset, sequence, tracking, slow, storm, tenants`},
		},
		"workload twice": {[]string{"--workload", "slow,slow"}, []string{"--workload: slow is listed twice"}},
		"all and one":    {[]string{"--workload", "all,slow"}, []string{"--workload: slow is listed twice"}},
		"no workload":    {[]string{"--workload", ""}, []string{"--workload: "}},
		"contender": {
			[]string{"--contenders", "us"}, []string{`--contenders: unknown contender "us", must be one of hand-written, trueup`},
		},
		"no contender":              {[]string{"--contenders", ""}, []string{"--contenders: "}},
		"size zero":                 {[]string{"--sizes", "500,0"}, []string{"--sizes: must be greater than 0, got 0"}},
		"size negative":             {[]string{"--sizes", "-5"}, []string{"--sizes: must be greater than 0, got -5"}},
		"size twice":                {[]string{"--sizes", "5,50,5"}, []string{"--sizes: a size is listed twice"}},
		"size that is not a number": {[]string{"--sizes", "many"}, []string{"--sizes"}},
		"no rounds":                 {[]string{"--rounds", "0"}, []string{"--rounds: must be greater than 0, got 0"}},
		"no workers":                {[]string{"--workers", "-1"}, []string{"--workers: must be greater than 0, got -1"}},
		"no time":                   {[]string{"--timeout", "0s"}, []string{"--timeout: must be greater than 0, got 0s"}},
		"latency":                   {[]string{"--latency", "-1ms"}, []string{"--latency: must not be negative, got -1ms"}},
		"unknown flag":              {[]string{"--size", "5"}, []string{"unknown flag: --size"}},
		"argument":                  {[]string{"converge"}, []string{`"converge"`}},
		"unknown observer": {
			[]string{"--observe", "all"}, []string{`--observe: must be one of nothing, metrics, recorder, console, got "all"`},
		},
		"several mistakes": {[]string{"--rounds", "0", "--sizes", "0"}, []string{"--rounds: ", "--sizes: "}},
		"json":             {[]string{"--json", missing}, []string{"--json: ", missing}},
		"cpuprofile":       {[]string{"--cpuprofile", missing}, []string{"--cpuprofile: ", missing}},
		"memprofile":       {[]string{"--memprofile", missing}, []string{"--memprofile: ", missing}},
		"profile of two": {
			[]string{"--cpuprofile", "a", "--workload", "converge,childset"},
			[]string{"--cpuprofile, --memprofile: need exactly one workload"},
		},
		"profile of slow": {
			[]string{"--memprofile", "a", "--workload", "slow"},
			[]string{"--cpuprofile, --memprofile: need exactly one workload"},
		},
		"svg":               {[]string{"--svg", "command_test.go"}, []string{"--svg: ", "command_test.go"}},
		"from nowhere":      {[]string{"--from", missing}, []string{missing}},
		"from invalid JSON": {[]string{"--from", "command_test.go"}, []string{"command_test.go: invalid JSON of a run: "}},
		"from and json":     {[]string{"--from", "a.json", "--json", "a.json"}, []string{"[from json]"}},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := execute(t.Context(), test.args...)
			if code != 1 || stdout != "" || !strings.HasPrefix(stderr, "error: ") {
				t.Errorf("exit code %d, output %q, error output %q; want 1, none and an error", code, stdout, stderr)
			}
			for _, want := range test.want {
				if !strings.Contains(stderr, want) {
					t.Errorf("error output %q does not contain %q", stderr, want)
				}
			}
		})
	}
}

func TestHelp(t *testing.T) {
	code, stdout, stderr := execute(t.Context(), "--help")
	if code != 0 || stderr != "" {
		t.Errorf("exit code %d, error output %q", code, stderr)
	}
	for _, flag := range []string{
		"--workload", "--sizes", "--rounds", "--observe", "--json", "--svg", "--quiet", "--cpuprofile", "--memprofile",
	} {
		if !strings.Contains(stdout, flag+" ") {
			t.Errorf("the help does not mention %s", flag)
		}
	}
}

func TestFrom(t *testing.T) {
	metric := report.Metric{Name: "wall to converge", Unit: "s", Drawn: true}
	w := &report.Workload{Name: "converge", About: "work", Noun: "parents"}
	for _, contender := range report.Contenders() {
		w.Add(
			report.Sample{Contender: contender, Size: 500, Round: 1, Values: map[string]float64{metric.Name: 1.5}},
			[]report.Metric{metric},
		)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "run.json")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := (&report.Run{Rounds: 1, Workloads: []*report.Workload{w}}).Write(file); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}

	pictures := filepath.Join(dir, "new", "pictures")
	code, stdout, stderr := execute(t.Context(), "--from", path, "--svg", pictures)
	if code != 0 || stderr != "" {
		t.Fatalf("exit code %d, error output %q", code, stderr)
	}
	if !strings.Contains(stdout, "converge: work") ||
		!strings.Contains(stdout, "wall to converge (s)  hand-written  1.50") {
		t.Errorf("the output is not the expected table: %s", stdout)
	}
	if info, err := os.Stat(filepath.Join(pictures, "converge-wall-to-converge.svg")); err != nil || info.Size() == 0 {
		t.Errorf("reading the picture: %v, %v", info, err)
	}
}

// cancelAfter cancels when a line has been written.
type cancelAfter struct {
	strings.Builder
	cancel context.CancelFunc
}

func (w *cancelAfter) Write(line []byte) (int, error) {
	w.cancel()
	return w.Builder.Write(line)
}

// TestInterrupt starts a measurement on a control plane of its own, and interrupts it.
func TestInterrupt(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp) // control planes create their directories here
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	stdout, stderr := strings.Builder{}, cancelAfter{cancel: cancel}
	code := run(ctx, []string{"--workload", "slow", "--latency", "1ms", "--sizes", "2"}, &stdout, &stderr)
	if code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
	if !strings.Contains(stderr.String(), "interrupted: slow, 2 parents, round 1 of 3, trueup: ") {
		t.Errorf("error output %q does not name the interrupted measurement", stderr.String())
	}
	if !strings.Contains(stdout.String(), "create configmaps") || strings.Contains(stdout.String(), report.Trueup) {
		t.Errorf("output %q, want a table of the earlier measurements", stdout.String())
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("remaining files: %v, %v", left, err)
	}
}
