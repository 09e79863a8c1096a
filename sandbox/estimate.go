// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"runtime"
	"strings"
	"time"
)

const (
	// The processor time for a package of the control plane, on a fast and on a slow machine.
	fastPackage = 150 * time.Millisecond
	slowPackage = 450 * time.Millisecond
	// linkShare is the share of linking in the time of a complete build.
	linkShare = 0.1
	// Earlier estimates are useless: the first packages of a build are small.
	firstEstimate = 10 * time.Second
	minFraction   = 0.05
)

// workload estimates the time of a build. The weight of a package is its number of Go files.
type workload struct {
	weights     map[string]float64
	done, total float64
	began       time.Time
}

// newWorkload parses the output of "go list": each line has the path of a package to compile and its number of files.
func newWorkload(list string) *workload {
	w := &workload{weights: map[string]float64{}, began: time.Now()}
	for line := range strings.Lines(list) {
		var path string
		files := 0
		if n, _ := fmt.Sscan(line, &path, &files); n == 0 {
			continue
		}
		w.weights[path] = float64(files + 1)
		w.total += float64(files + 1)
	}
	return w
}

// expected returns how long the build takes, before anything is compiled. It returns "" for a short build.
func (w *workload) expected() string {
	processors := runtime.GOMAXPROCS(0)
	count := time.Duration(len(w.weights))
	fast, slow := count*fastPackage/time.Duration(processors), count*slowPackage/time.Duration(processors)
	if slow < time.Minute {
		return ""
	}
	return fmt.Sprintf(" (about %s to %s min on %d processors)", minutes(fast), minutes(slow), processors)
}

func minutes(d time.Duration) string { return fmt.Sprint(max(1, int(d.Round(time.Minute).Minutes()))) }

// compiling records that a package is being compiled. It returns how long the build still takes, or 0 if that is
// unknown.
func (w *workload) compiling(path string) time.Duration {
	w.done += w.weights[path]
	elapsed := time.Since(w.began)
	fraction := w.done / max(w.total, 1) * (1 - linkShare)
	if elapsed < firstEstimate || fraction < minFraction {
		return 0
	}
	return remaining(elapsed, fraction)
}

// remaining returns the time left after a fraction of the work is done, or 0 if that is unknown.
func remaining(elapsed time.Duration, fraction float64) time.Duration {
	if elapsed < time.Second || fraction <= 0 || fraction >= 1 {
		return 0
	}
	return time.Duration(float64(elapsed) * (1 - fraction) / fraction)
}

// roundly describes the time left, without precision that it does not have.
func roundly(left time.Duration) string {
	switch {
	case left >= 90*time.Second:
		return fmt.Sprintf("about %s min left", minutes(left))
	case left >= 10*time.Second:
		return fmt.Sprintf("about %d s left", int(left.Round(10*time.Second).Seconds()))
	}
	return "a few seconds left"
}
