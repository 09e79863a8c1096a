// SPDX-License-Identifier: Apache-2.0

// Converge measures the cost of a controller that is written with trueup, compared to the same controller written by
// hand, on a real Kubernetes API.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func main() {
	// The libraries would only log what the measurements cause on purpose.
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-ctx.Done()
		stop() // a second signal ends the program immediately
	}()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run runs the command and returns its exit code: 0 for success, 1 for an error, 130 for an interrupt.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	command := newCommand()
	command.SetArgs(args)
	command.SetOut(stdout)
	command.SetErr(stderr)
	err := command.ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil:
		fmt.Fprintf(stderr, "interrupted: %v\n", err)
		return 130
	default:
		fmt.Fprintf(stderr, "error: %v\n", err)
		return 1
	}
}
