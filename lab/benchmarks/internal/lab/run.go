// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"trueup.dev/lab/benchmarks/internal/report"
	"trueup.dev/sandbox"
)

// Options define a run. All fields except Profile are required, see [Defaults].
type Options struct {
	Workloads []Workload
	// Sizes replace the sizes of each workload.
	Sizes []int
	// Contenders are the names of contenders in package report.
	Contenders []string
	Rounds     int
	// Workers is the maximum number of concurrent reconciles of a controller.
	Workers int
	// Timeout bounds each measurement.
	Timeout time.Duration
	// Quiet is the time without any activity after which a controller counts as idle.
	Quiet time.Duration
	// Visits is the approximate number of visits to children when the no-op cost is measured. A larger number reduces
	// noise and includes a share of the garbage collection.
	Visits int
	// Logging gives the controllers a logger, as in production. The logs are discarded.
	Logging bool
	// Observe is what observes the controllers that are built with trueup: one of [Observers].
	Observe string
	// ReduceCache removes from the caches of all controllers what [reconcilers.CacheTransform] removes.
	ReduceCache bool
	// Sandbox selects the control plane of each measurement. On an existing cluster, all objects are removed after
	// each.
	Sandbox sandbox.Options
	// Profile receives profiles. Optional; requires a single workload.
	Profile Profile
	// Progress receives a line for each result.
	Progress func(line string)
}

// Defaults returns the default options, without workloads.
func Defaults() Options {
	return Options{
		Contenders: report.Contenders(),
		Rounds:     3,
		Workers:    10,
		Timeout:    10 * time.Minute,
		Quiet:      time.Second,
		Visits:     20_000,
		Observe:    ObserveMetrics,
		// Other activity on a control plane would be noise.
		Sandbox:  sandbox.Options{Controllers: []string{"none"}, DisablePods: true},
		Profile:  Profile{duration: 10 * time.Second},
		Progress: func(string) {},
	}
}

// Run measures. Within a round, the contenders take turns at each size, and which contender starts alternates from
// round to round, so that other load on the machine affects all contenders. The measurements are also returned after an
// error.
func Run(ctx context.Context, o Options) (*report.Run, error) {
	run := &report.Run{
		Environment: report.Environment{
			Started: time.Now().UTC().Truncate(time.Second), Go: runtime.Version(),
			Platform: runtime.GOOS + "/" + runtime.GOARCH,
			CPUs:     runtime.GOMAXPROCS(0), Workers: o.Workers, Logging: o.Logging,
		},
	}
	trials, atRest := o.trials(), heap()
	for i, trial := range trials {
		trial.heapAtRest = atRest
		if err := trial.run(ctx); err != nil {
			return run, fmt.Errorf("%s: %w", trial, err)
		}
		about := trial.workload.About()
		if len(run.Workloads) == 0 || run.Workloads[len(run.Workloads)-1].Name != about.Name {
			run.Workloads = append(run.Workloads, &report.Workload{Name: about.Name, About: about.Text, Noun: about.Noun})
		}
		run.Workloads[len(run.Workloads)-1].Add(trial.sample, trial.tallied())
		run.Rounds = max(run.Rounds, trial.sample.Round)
		run.Environment.Kubernetes = trial.kubernetes
		trials[i] = nil // and with it the caches of its controller
		o.Progress(fmt.Sprintf("[%d/%d] %s: %s", i+1, len(trials), trial, strings.Join(trial.notes, ", ")))
	}
	return run, nil
}

// trials are all measurements, in order.
func (o Options) trials() []*Trial {
	trials := []*Trial{}
	for _, workload := range o.Workloads {
		for round := 1; round <= o.Rounds; round++ {
			for _, size := range o.sizes(workload) {
				for _, contender := range o.turns(round) {
					trials = append(trials, &Trial{
						Contender: contender, Size: size, workload: workload, options: o,
						sample: report.Sample{Contender: contender, Size: size, Round: round, Values: map[string]float64{}},
					})
				}
			}
		}
	}
	return trials
}

func (o Options) sizes(w Workload) []int {
	if len(o.Sizes) > 0 {
		return o.Sizes
	}
	return w.About().Sizes
}

func (o Options) turns(round int) []string {
	turns := slices.Clone(o.Contenders)
	if round%2 == 0 {
		slices.Reverse(turns)
	}
	return turns
}

func (t *Trial) String() string {
	about := t.workload.About()
	return fmt.Sprintf(
		"%s, %d %s, round %d of %d, %s", about.Name, t.Size, about.Noun, t.sample.Round, t.options.Rounds, t.Contender,
	)
}

// profiled reports whether the measurement is profiled: the last contender at the largest size, in the last round.
func (t *Trial) profiled() bool {
	o := t.options
	return t.sample.Round == o.Rounds && t.Size == slices.Max(o.sizes(t.workload)) &&
		t.Contender == o.Contenders[len(o.Contenders)-1]
}

// run does one measurement, and removes everything that it created.
func (t *Trial) run(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, t.options.Timeout, fmt.Errorf("timed out after %s", t.options.Timeout))
	defer cancel()
	defer func() { err = errors.Join(err, t.close()) }()
	if err := t.open(ctx); err != nil {
		return causeOf(ctx, err)
	}
	// The measurement ends if the control plane ends unexpectedly.
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		select {
		case <-t.sandbox.Done():
			stop(fmt.Errorf("the control plane stopped: %w", t.sandbox.Err()))
		case <-ctx.Done():
		}
	}()
	return causeOf(ctx, t.workload.Run(ctx, t))
}

// causeOf replaces the error of a canceled context by the cause of the cancellation.
func causeOf(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
