// SPDX-License-Identifier: Apache-2.0

package logging

import (
	"context"
	"log/slog"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Logger writes entries of four levels. Keys are strings, each followed by its value.
type Logger interface {
	// Debug is for those who look for a mistake.
	Debug(msg string, keysAndValues ...any)
	// Info is for what happens in normal operation.
	Info(msg string, keysAndValues ...any)
	// Warn is for what should not happen and does no harm yet.
	Warn(msg string, keysAndValues ...any)
	// Error is for failures. The error itself belongs under the key "error".
	Error(msg string, keysAndValues ...any)
	// With returns a logger whose entries all have the keys and values.
	With(keysAndValues ...any) Logger
	// WithContext returns a logger that hands the context to what it logs to, if that takes one.
	WithContext(ctx context.Context) Logger
}

// DefaultLogger is for contexts without a logger. Default: the logger given to controller-runtime's log.SetLogger, none as long as there is none. Replace it
// only while nothing is logged, at the start of a program.
var DefaultLogger = NewLogrLogger(log.Log)

// FromContext returns the logger of the context, or else [DefaultLogger].
func FromContext(ctx context.Context) Logger {
	logger, err := logr.FromContext(ctx)
	if err != nil {
		return DefaultLogger.WithContext(ctx)
	}
	if s, ok := logger.GetSink().(*sink); ok && logger.GetV() == 0 {
		return s.named().WithContext(ctx)
	}
	return NewLogrLogger(logger)
}

// Context returns a context with the logger, for [FromContext], [logr.FromContext] and controller-runtime's log.FromContext.
func Context(ctx context.Context, logger Logger) context.Context {
	if l, ok := logger.(*logrLogger); ok {
		return logr.NewContext(ctx, l.logger)
	}
	return logr.NewContext(ctx, logr.New(&sink{logger: logger}))
}

// NewSLogLogger returns a logger that writes to a slog handler. [Logger.WithContext] sets the context the handler is called with, which some take trace
// identifiers from; [FromContext] does so by itself.
func NewSLogLogger(handler slog.Handler) Logger {
	return &slogLogger{handler: handler, ctx: context.Background()}
}

// NewLogrLogger returns a logger that writes to a logr one. Logr takes no contexts, so that [Logger.WithContext] changes nothing.
func NewLogrLogger(logger logr.Logger) Logger {
	return &logrLogger{logger: logger}
}
