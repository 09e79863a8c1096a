// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"trueup.dev/cmd/trueup/internal/demo"
	"trueup.dev/cmd/trueup/internal/migrate"
)

func main() {
	ctx, stop := untilSignal(context.Background())
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run runs a command and returns the exit code: 0 on success, 1 on failure, 3 if migrate leaves something to do by
// hand, and 128 plus the signal number if a signal ended it.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	commands := []*subcommand{
		demoCommand(), replicaCommand(), upCommand(), whyCommand(), recordCommand(), permissionsCommand(), graphCommand(),
		rbacCommand(), buildCommand(), envtestCommand(), migrateCommand(), versionCommand(),
	}
	err := dispatch(ctx, commands, args, stdout, stderr)
	var by interruption
	var failed *failure
	var input *demo.InputError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, migrate.ErrLeft): // printed
		return exitLeft
	case errors.As(err, &by):
		fmt.Fprintf(stderr, "%s: stopped, all processes have ended\n", by)
		return 128 + int(by.signal)
	case errors.As(err, &input):
		fmt.Fprintf(stderr, "error: %v\n", input)
	case errors.As(err, &failed):
		fmt.Fprintln(stdout, failed)
	default:
		fmt.Fprintf(stderr, "error: %v\n", err)
	}
	return 1
}

// failure is an error that is printed in one line as the last line of the output.
type failure struct{ err error }

func (f *failure) Error() string {
	return "demo: failed: " + strings.Join(strings.Split(f.err.Error(), "\n"), "; ")
}

func (f *failure) Unwrap() error { return f.err }

// interruption is the cause of a context that was canceled by a signal.
type interruption struct{ signal syscall.Signal }

func (i interruption) Error() string { return i.signal.String() }

// untilSignal returns a context that is canceled by SIGINT or SIGTERM. A second signal ends the process immediately;
// the control plane detects that and ends, too.
func untilSignal(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		select {
		case s := <-signals:
			signal.Stop(signals)
			cancel(interruption{s.(syscall.Signal)})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}
