// SPDX-License-Identifier: Apache-2.0

// Command measure runs the control plane's binary under load, and prints its resident memory, the size of its data
// directory and the time of lists:
//
//	(cd ../controlplane && go build -o /tmp/trueup-controlplane ./cmd/trueup-controlplane)
//	cd lab
//	go run ./measure -binary /tmp/trueup-controlplane -pairs 500000
//	go run ./measure -binary /tmp/trueup-controlplane -objects 100000
//
// With -pairs it creates and deletes that many ConfigMaps. With -objects it creates that many objects of a custom
// resource, and starts the control plane again with the same data. With -max-resident and -max-disk it fails if a
// figure exceeds the limit.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"
)

// settings are the flags.
type settings struct {
	binary      string
	arguments   string
	pairs       int
	objects     int
	workers     int
	every       time.Duration
	settle      time.Duration
	maxResident int64
	maxDisk     int64
	heap        string
}

func main() {
	var s settings
	flag.StringVar(&s.binary, "binary", os.Getenv("TRUEUP_CONTROLPLANE"), "trueup-controlplane `file` to measure")
	flag.StringVar(&s.arguments, "arguments", "", "further `arguments` of the control plane, separated by spaces")
	flag.IntVar(&s.pairs, "pairs", 0, "`number` of ConfigMaps to create and delete")
	flag.IntVar(&s.objects, "objects", 0, "`number` of objects of a custom resource to create and keep")
	flag.IntVar(&s.workers, "workers", 8, "`number` of concurrent clients")
	flag.DurationVar(&s.every, "every", 15*time.Second, "`interval` of the printed lines")
	flag.DurationVar(&s.settle, "settle", 30*time.Second, "`time` to observe after the load")
	flag.Int64Var(&s.maxResident, "max-resident", 0, "fail if the resident memory at the end exceeds this many `MB`")
	flag.Int64Var(&s.maxDisk, "max-disk", 0, "fail if the data at the end exceeds this many `MB`")
	flag.StringVar(&s.heap, "heap", "", "write a heap profile at the end of the load to this `file`")
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
	var problems []error
	if s.binary == "" {
		problems = append(problems, errors.New("-binary is required: the path of trueup-controlplane"))
	}
	if s.pairs < 0 || s.objects < 0 || s.pairs == 0 && s.objects == 0 {
		problems = append(problems, errors.New("-pairs or -objects is required: a number greater than 0"))
	}
	if s.workers < 1 {
		problems = append(problems, fmt.Errorf("-workers must be greater than 0, got %d", s.workers))
	}
	if len(problems) > 0 {
		return errors.Join(problems...)
	}
	if s.heap != "" {
		s.arguments += " --apiserver-arg profiling=true"
	}
	if s.pairs > 0 {
		if err := inTemporary(func(dir string) error { return s.measurePairs(ctx, out, dir) }); err != nil {
			return err
		}
	}
	if s.objects > 0 {
		return inTemporary(func(dir string) error { return s.measureObjects(ctx, out, dir) })
	}
	return nil
}

// inTemporary calls measure with a directory for the data, which it removes afterwards.
func inTemporary(measure func(dir string) error) error {
	dir, err := os.MkdirTemp("", "trueup-measure-*")
	if err != nil {
		return err
	}
	return errors.Join(measure(dir), os.RemoveAll(dir))
}

// limits returns an error if usage exceeds a flag.
func (s settings) limits(u usage) error {
	var exceeded []error
	if s.maxResident > 0 && u.resident > s.maxResident*megabyte {
		exceeded = append(exceeded, fmt.Errorf("resident memory is %s, want at most %d MB", mb(u.resident), s.maxResident))
	}
	if s.maxDisk > 0 && u.disk > s.maxDisk*megabyte {
		exceeded = append(exceeded, fmt.Errorf("data is %s, want at most %d MB", mb(u.disk), s.maxDisk))
	}
	return errors.Join(exceeded...)
}

func (s settings) extraArguments() []string { return strings.Fields(s.arguments) }
