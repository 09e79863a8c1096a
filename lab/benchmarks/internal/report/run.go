// SPDX-License-Identifier: Apache-2.0

// Package report stores measurements, and formats them as a table, as JSON and as pictures.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"
)

// The contenders of every workload.
const (
	// HandWritten is the baseline. It uses only controller-runtime.
	HandWritten = "hand-written"
	// Trueup is the same controller as a tree of reconcilers.
	Trueup = "trueup"
)

// Contenders are all contenders, the baseline first.
func Contenders() []string { return []string{HandWritten, Trueup} }

// Run is the result of one run of the program.
type Run struct {
	Environment Environment `json:"environment"`
	// Rounds is the number of measurements of each contender at each size.
	Rounds    int         `json:"rounds"`
	Workloads []*Workload `json:"workloads"`
}

// Environment describes the machine and the options of a run.
type Environment struct {
	Started    time.Time `json:"started"`
	Go         string    `json:"go"`
	Platform   string    `json:"platform"`
	CPUs       int       `json:"cpus"`
	Kubernetes string    `json:"kubernetes"`
	// Workers is the maximum number of concurrent reconciles of a controller.
	Workers int `json:"workers"`
	// Logging reports whether the controllers had a logger.
	Logging bool `json:"logging"`
}

// Workload is the result of one workload.
type Workload struct {
	Name  string `json:"name"`
	About string `json:"about"`
	// Noun is the unit of a size, in the plural.
	Noun string `json:"noun"`
	// Metrics are in display order.
	Metrics []Metric `json:"metrics"`
	Samples []Sample `json:"samples"`
	// Medians are the medians over all rounds, for each size and contender.
	Medians []Sample `json:"medians"`
}

// Metric is a measured quantity.
type Metric struct {
	// Name is unique within a workload.
	Name string `json:"name"`
	Unit string `json:"unit,omitempty"`
	// Tally reports whether the metric is a count that explains others. Tallies are shown without ratios.
	Tally bool `json:"tally,omitempty"`
	// Drawn reports whether the metric has a picture.
	Drawn bool `json:"drawn,omitempty"`
}

func (m Metric) label() string {
	if m.Unit == "" {
		return m.Name
	}
	return m.Name + " (" + m.Unit + ")"
}

// Sample is the result of one contender at one size.
type Sample struct {
	Contender string `json:"contender"`
	Size      int    `json:"size"`
	// Round is 0 for a median.
	Round int `json:"round,omitempty"`
	// Values are the values by name of metric.
	Values map[string]float64 `json:"values"`
}

// Add adds a sample. Its metrics are in measuring order; metrics that no earlier sample has are inserted after the
// metrics that they follow in the sample.
func (w *Workload) Add(sample Sample, metrics []Metric) {
	w.Samples = append(w.Samples, sample)
	place := 0
	for _, metric := range metrics {
		i := slices.IndexFunc(w.Metrics, func(known Metric) bool { return known.Name == metric.Name })
		if i < 0 {
			i = place
			w.Metrics = slices.Insert(w.Metrics, i, metric)
		}
		place = i + 1
	}
	w.Medians = medians(w.Samples)
}

// Sizes returns the measured sizes in ascending order.
func (w *Workload) Sizes() []int {
	sizes := []int{}
	for _, sample := range w.Samples {
		sizes = append(sizes, sample.Size)
	}
	slices.Sort(sizes)
	return slices.Compact(sizes)
}

// Contenders returns the measured contenders, the baseline first.
func (w *Workload) Contenders() []string {
	return slices.DeleteFunc(Contenders(), func(name string) bool {
		return !slices.ContainsFunc(w.Samples, func(sample Sample) bool { return sample.Contender == name })
	})
}

// Median returns the median of a metric over all rounds, and false if it was not measured.
func (w *Workload) Median(metric, contender string, size int) (float64, bool) {
	for _, median := range w.Medians {
		if median.Contender == contender && median.Size == size {
			value, ok := median.Values[metric]
			return value, ok
		}
	}
	return 0, false
}

// Write writes the run as JSON.
func (r *Run) Write(out io.Writer) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

// Read reads a run from JSON.
func Read(in io.Reader) (*Run, error) {
	run := &Run{}
	decoder := json.NewDecoder(in)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(run); err != nil {
		return nil, fmt.Errorf("invalid JSON of a run: %w", err)
	}
	if len(run.Workloads) == 0 {
		return nil, fmt.Errorf("invalid JSON of a run: no workloads")
	}
	return run, nil
}
