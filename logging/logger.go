// SPDX-License-Identifier: Apache-2.0

package logging

import (
	"context"
	"log/slog"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Logger writes log entries at four levels. Keys are strings, and a value follows each key.
type Logger interface {
	// Debug logs details for troubleshooting.
	Debug(msg string, keysAndValues ...any)
	// Info logs normal operation.
	Info(msg string, keysAndValues ...any)
	// Warn logs unexpected events that are not failures.
	Warn(msg string, keysAndValues ...any)
	// Error logs failures. Pass the error under the key "error".
	Error(msg string, keysAndValues ...any)
	// With returns a logger that adds the keys and values to all of its entries.
	With(keysAndValues ...any) Logger
	// WithContext returns a logger that passes the context to its backend, if the backend accepts one.
	WithContext(ctx context.Context) Logger
}

// DefaultLogger is used for contexts without a logger. Default: the logger set with controller-runtime's log.SetLogger;
// until it is set, entries are dropped. Replace DefaultLogger only at the start of a program, while no other goroutine
// logs.
var DefaultLogger = NewLogrLogger(log.Log)

// FromContext returns the logger of the context. If the context has none, it returns [DefaultLogger].
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

// Context returns a context with the logger, for [FromContext], [logr.FromContext] and controller-runtime's
// log.FromContext.
func Context(ctx context.Context, logger Logger) context.Context {
	if l, ok := logger.(*logrLogger); ok {
		return logr.NewContext(ctx, l.logger)
	}
	return logr.NewContext(ctx, logr.New(&sink{logger: logger}))
}

// NewSLogLogger returns a logger that writes to a slog handler. [Logger.WithContext] sets the context that is passed to
// the handler. Some handlers read trace identifiers from it. [FromContext] sets it automatically.
func NewSLogLogger(handler slog.Handler) Logger {
	return &slogLogger{handler: handler, ctx: context.Background()}
}

// NewLogrLogger returns a logger that writes to a logr logger. [Logger.WithContext] has no effect, because logr accepts
// no context.
func NewLogrLogger(logger logr.Logger) Logger {
	return &logrLogger{logger: logger}
}
