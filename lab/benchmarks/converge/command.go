// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"trueup.dev/lab/benchmarks/internal/lab"
	"trueup.dev/lab/benchmarks/internal/report"
	"trueup.dev/lab/benchmarks/internal/workload"
	"trueup.dev/sandbox"
)

// flags are the flags of the command line.
type flags struct {
	workloads  []string
	contenders []string
	sizes      []int
	rounds     int
	workers    int
	latency    time.Duration
	timeout    time.Duration
	logging    bool
	observe    string
	reduce     bool
	quiet      bool
	from       string
	json       string
	svg        string
	cpu        string
	allocs     string
}

func newCommand() *cobra.Command {
	f, defaults := flags{}, lab.Defaults()
	command := &cobra.Command{
		Use:   "converge",
		Short: "Compare the cost of a controller written with trueup to one written by hand",
		Long: `converge measures the cost of a controller that is written with trueup, compared to the same controller
written by hand with controller-runtime, on a real Kubernetes API. Both take turns in the same run. The results are the
medians of all rounds.

Each measurement has its own control plane. If the environment variable TRUEUP_KUBECONFIG is set, that cluster is used
instead, in the namespace ` + lab.Namespace + `, which is emptied.`,
		Example: `  converge
  converge --workload all --rounds 5 --json results.json --svg pictures
  converge --sizes 5000 --contenders trueup --rounds 1 --cpuprofile cpu.prof`,
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd)
		},
	}
	command.CompletionOptions.HiddenDefaultCmd = true
	set := command.Flags()
	set.StringSliceVar(
		&f.workloads, "workload", []string{workload.Converge{}.About().Name},
		"workloads to measure, one or more of: "+strings.Join(names(workload.All(0)), ", "),
	)
	set.IntSliceVar(
		&f.sizes, "sizes", nil, "numbers of parents or children, for example 500,2000 (default: the sizes of the workload)",
	)
	set.IntVar(&f.rounds, "rounds", defaults.Rounds, "number of times to repeat each measurement")
	set.StringSliceVar(&f.contenders, "contenders", defaults.Contenders, "controllers to measure")
	set.IntVar(&f.workers, "workers", defaults.Workers, "maximum number of concurrent reconciles of a controller")
	set.DurationVar(
		&f.latency, "latency", 20*time.Millisecond,
		"latency of every request in the workloads slow, storm and tenants",
	)
	set.DurationVar(&f.timeout, "timeout", defaults.Timeout, "timeout of one measurement")
	set.BoolVar(
		&f.logging, "logging", false, "log in the controllers, as in production; the logs are discarded",
	)
	set.StringVar(
		&f.observe, "observe", defaults.Observe,
		"what observes the controllers of trueup: "+strings.Join(lab.Observers(), ", ")+" (with a reader)",
	)
	set.BoolVar(
		&f.reduce, "reduce-cache", false, "remove from the caches of all controllers what reconcilers.CacheTransform removes",
	)
	set.BoolVarP(&f.quiet, "quiet", "q", false, "do not print progress")
	set.StringVar(&f.from, "from", "", "do not measure; print the results of a `file` written with --json")
	set.StringVar(&f.json, "json", "", "write all results to the `file`")
	set.StringVar(&f.svg, "svg", "", "draw cost against size, as SVG files in the `directory`")
	set.StringVar(
		&f.cpu, "cpuprofile", "",
		"write a CPU profile of no-op reconciles of the last contender at the largest size to the `file`",
	)
	set.StringVar(&f.allocs, "memprofile", "", "write a profile of their allocations to the `file`")
	for _, output := range []string{"json", "cpuprofile", "memprofile"} {
		command.MarkFlagsMutuallyExclusive("from", output)
	}
	return command
}

func names(workloads []lab.Workload) []string {
	names := []string{}
	for _, w := range workloads {
		names = append(names, w.About().Name)
	}
	return names
}

func (f *flags) run(cmd *cobra.Command) (err error) {
	o, err := f.options()
	if err != nil {
		return err
	}
	// Open the outputs first: an error must not occur after the measurements.
	results, err := f.outputs(&o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, results.close()) }()

	run, err := f.measure(cmd, o)
	if run != nil && len(run.Workloads) > 0 {
		// After an error, too: the measurements took long.
		err = errors.Join(err, run.Table(cmd.OutOrStdout()))
	}
	if err != nil {
		return err
	}
	if results.json != nil {
		if err := run.Write(results.json); err != nil {
			return err
		}
	}
	if f.svg != "" {
		_, err = run.Draw(f.svg)
	}
	return err
}

func (f *flags) measure(cmd *cobra.Command, o lab.Options) (*report.Run, error) {
	if f.from != "" {
		file, err := os.Open(f.from)
		if err != nil {
			return nil, err
		}
		defer file.Close() //nolint:errcheck // it was only read
		run, err := report.Read(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.from, err)
		}
		return run, nil
	}
	progress := cmd.ErrOrStderr()
	if f.quiet {
		progress = io.Discard
	}
	o.Progress = func(line string) { fmt.Fprintln(progress, line) }
	o.Profile.Prepare()
	// Only the first round prints this.
	building := o.Sandbox
	building.Progress = progress
	if _, err := sandbox.Build(cmd.Context(), building); err != nil {
		return nil, err
	}
	o.Sandbox.Progress = io.Discard
	return lab.Run(cmd.Context(), o)
}

// options returns the options of the flags, or an error with all mistakes.
func (f *flags) options() (lab.Options, error) {
	o := lab.Defaults()
	o.Rounds, o.Workers, o.Timeout, o.Logging = f.rounds, f.workers, f.timeout, f.logging
	o.ReduceCache = f.reduce
	var errs []error
	mistake := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }

	o.Workloads = f.chosen(mistake)
	o.Contenders = slices.DeleteFunc(report.Contenders(), func(name string) bool {
		return !slices.Contains(f.contenders, name)
	})
	if len(f.contenders) == 0 {
		mistake("--contenders: at least one is required")
	}
	for _, name := range f.contenders {
		if !slices.Contains(o.Contenders, name) {
			mistake("--contenders: unknown contender %q, must be one of %s", name, strings.Join(report.Contenders(), ", "))
		}
	}
	o.Sizes = slices.Sorted(slices.Values(f.sizes))
	for _, size := range o.Sizes {
		if size < 1 {
			mistake("--sizes: must be greater than 0, got %d", size)
		}
	}
	if len(slices.Compact(slices.Clone(o.Sizes))) < len(o.Sizes) {
		mistake("--sizes: a size is listed twice")
	}
	busy := names([]lab.Workload{workload.Slow{}, workload.Storm{}, workload.Tenants{}})
	if f.cpu+f.allocs != "" && (len(o.Workloads) != 1 || slices.Contains(busy, o.Workloads[0].About().Name)) {
		mistake("--cpuprofile, --memprofile: need exactly one workload with no-op reconciles, which %s do not have",
			strings.Join(busy, ", "))
	}
	if o.Observe = f.observe; !slices.Contains(lab.Observers(), f.observe) {
		mistake("--observe: must be one of %s, got %q", strings.Join(lab.Observers(), ", "), f.observe)
	}
	if f.rounds < 1 {
		mistake("--rounds: must be greater than 0, got %d", f.rounds)
	}
	if f.workers < 1 {
		mistake("--workers: must be greater than 0, got %d", f.workers)
	}
	if f.timeout <= 0 {
		mistake("--timeout: must be greater than 0, got %s", f.timeout)
	}
	if f.latency < 0 {
		mistake("--latency: must not be negative, got %s", f.latency)
	}
	return o, errors.Join(errs...)
}

// chosen returns the workloads of the flags.
func (f *flags) chosen(mistake func(format string, args ...any)) (selected []lab.Workload) {
	all := workload.All(f.latency)
	if len(f.workloads) == 0 {
		mistake("--workload: at least one is required")
	}
	for _, name := range f.workloads {
		i, chosen := slices.Index(names(all), name), []lab.Workload{}
		switch {
		case name == "all":
			chosen = all
		case i < 0:
			mistake("--workload: unknown workload %q, must be one of all, %s", name, strings.Join(names(all), ", "))
		default:
			chosen = all[i : i+1]
		}
		for _, w := range chosen {
			if slices.Contains(names(selected), w.About().Name) {
				mistake("--workload: %s is listed twice", w.About().Name)
			}
			selected = append(selected, w)
		}
	}
	return selected
}

// outputs are the requested files.
type outputs struct{ json, cpu, allocs *os.File }

func (f *flags) outputs(o *lab.Options) (files outputs, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, files.close())
		}
	}()
	if f.svg != "" {
		if err := os.MkdirAll(f.svg, 0o777); err != nil {
			return files, fmt.Errorf("--svg: %w", err)
		}
	}
	for _, wanted := range []struct {
		flag, path string
		file       **os.File
	}{
		{"--json", f.json, &files.json},
		{"--cpuprofile", f.cpu, &files.cpu},
		{"--memprofile", f.allocs, &files.allocs},
	} {
		if wanted.path == "" {
			continue
		}
		if *wanted.file, err = os.Create(wanted.path); err != nil {
			return files, fmt.Errorf("%s: %w", wanted.flag, err)
		}
	}
	// An io.Writer with a nil *os.File is not nil.
	if files.cpu != nil {
		o.Profile.CPU = files.cpu
	}
	if files.allocs != nil {
		o.Profile.Allocs = files.allocs
	}
	return files, nil
}

func (o outputs) close() error {
	var errs []error
	for _, file := range []*os.File{o.json, o.cpu, o.allocs} {
		if file != nil {
			errs = append(errs, file.Close())
		}
	}
	return errors.Join(errs...)
}
