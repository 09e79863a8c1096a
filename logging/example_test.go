// SPDX-License-Identifier: Apache-2.0

package logging_test

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"trueup.dev/logging"
)

// handler omits the time, so that the output of examples is stable.
func handler() slog.Handler {
	return slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	})
}

func ExampleFromContext() {
	// controller-runtime does this for each request.
	ctx := log.IntoContext(
		context.Background(), logr.FromSlogHandler(handler()).WithName("mykind").WithValues("name", "web"),
	)

	logger := logging.FromContext(ctx)
	logger.Info("applied", "generation", 7)
	logger.Warn("slow", "seconds", 3)
	logger.Error("not applied", "error", errors.New("no route to host"))
	// Output:
	// level=INFO msg=applied name=web logger=mykind generation=7
	// level=WARN msg=slow name=web logger=mykind seconds=3
	// level=ERROR msg="not applied" name=web logger=mykind err="no route to host"
}

func ExampleContext() {
	ctx := logging.Context(context.Background(), logging.NewSLogLogger(handler()).With("tenant", "blue"))

	logging.FromContext(ctx).Debug("found here")
	log.FromContext(ctx).Info("found by controller-runtime")
	// Output:
	// level=DEBUG msg="found here" tenant=blue
	// level=INFO msg="found by controller-runtime" tenant=blue
}

func ExampleNewSLogLogger() {
	logger := logging.NewSLogLogger(handler())
	logger.With("name", "web").Info("applied")
	// Output: level=INFO msg=applied name=web
}

func ExampleNewLogrLogger() {
	logger := logging.NewLogrLogger(logr.FromSlogHandler(handler()))
	logger.With("name", "web").Info("applied")
	// Output: level=INFO msg=applied name=web
}
