// SPDX-License-Identifier: Apache-2.0

package logging_test

import (
	"io"
	"log/slog"
	"testing"

	"github.com/go-logr/logr"

	"trueup.dev/logging"
)

func loggers() map[string]logging.Logger {
	handler := slog.NewTextHandler(io.Discard, nil)
	return map[string]logging.Logger{
		"Slog":         logging.NewSLogLogger(handler),
		"LogrOverSlog": logging.NewLogrLogger(logr.FromSlogHandler(handler)),
		"Discard":      logging.NewLogrLogger(logr.Discard()),
	}
}

// An entry of a disabled level allocates nothing but the arguments of the caller.
func TestDisabledAllocatesNothing(t *testing.T) {
	keysAndValues := []any{"name", "web", "generation", 7}
	for name, logger := range loggers() {
		if allocations := testing.AllocsPerRun(100, func() { logger.Debug("entry", keysAndValues...) }); allocations != 0 {
			t.Errorf("%s: %v allocations, want none", name, allocations)
		}
	}
}

func BenchmarkLogger(b *testing.B) {
	keysAndValues := []any{"name", "web", "generation", 7}
	for name, logger := range loggers() {
		b.Run("Disabled/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				logger.Debug("entry", keysAndValues...)
			}
		})
		b.Run("DisabledWithValues/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				logger.Debug("entry", "name", "web", "generation", 7)
			}
		})
		b.Run("Enabled/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				logger.Info("entry", keysAndValues...)
			}
		})
		ctx := logging.Context(b.Context(), logger)
		b.Run("FromContext/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				logging.FromContext(ctx).Debug("entry")
			}
		})
	}
}
