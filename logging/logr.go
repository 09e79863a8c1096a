// SPDX-License-Identifier: Apache-2.0

package logging

import (
	"context"
	"log/slog"
	"runtime"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
)

// debugLevel is the V-level of Debug.
const debugLevel = 1

// errorKey is the key under which an error is the error of an entry.
const errorKey = "error"

// logrLogger writes to logr.
//
// Sinks find the caller by counting frames: each method must call the logr.Logger, or in its place the sink, itself.
type logrLogger struct{ logger logr.Logger }

// direct returns the logger without the sink that controller-runtime waits for SetLogger with. That one stays in loggers made before, adds a frame, and
// hides what the sink behind it can do. Asking for no values is the way past it.
func (l *logrLogger) direct() logr.Logger {
	if _, ok := l.logger.GetSink().(logr.CallDepthLogSink); ok {
		return l.logger
	}
	return l.logger.WithValues()
}

func (l *logrLogger) Debug(msg string, keysAndValues ...any) {
	if !l.logger.V(debugLevel).Enabled() {
		return
	}
	logger := l.direct()
	sink := logger.GetSink()
	if _, ok := sink.(logr.Underlier); ok {
		// Slog's own level, instead of one slightly below INFO.
		if level := logger.GetV() - int(slog.LevelDebug); sink.Enabled(level) {
			sink.Info(level, msg, keysAndValues...)
		}
		return
	}
	helper, logger := logger.V(debugLevel).WithCallStackHelper()
	helper()
	logger.Info(msg, keysAndValues...)
}

func (l *logrLogger) Info(msg string, keysAndValues ...any) {
	if l.logger.Enabled() {
		helper, logger := l.direct().WithCallStackHelper()
		helper()
		logger.Info(msg, keysAndValues...)
	}
}

func (l *logrLogger) Warn(msg string, keysAndValues ...any) {
	logger := l.direct()
	sink := logger.GetSink()
	if _, ok := sink.(logr.Underlier); ok {
		if level := logger.GetV() - int(slog.LevelWarn); sink.Enabled(level) {
			sink.Info(level, msg, keysAndValues...)
		}
		return
	}
	if takesWarnings(sink) {
		handle(logr.ToSlogHandler(logger), msg, keysAndValues)
		return
	}
	if logger.Enabled() {
		helper, logger := logger.WithCallStackHelper()
		helper()
		logger.Info(msg, slices.Concat(keysAndValues, []any{"severity", "warning"})...)
	}
}

// takesWarnings reports whether a sink knows what to do with slog's warnings. That of funcr takes them for information.
func takesWarnings(sink logr.LogSink) bool {
	_, takesRecords := sink.(logr.SlogSink)
	_, isFuncr := sink.(funcr.Underlier)
	return takesRecords && !isFuncr
}

// handle hands a warning of the caller of Warn to a handler.
func handle(handler slog.Handler, msg string, keysAndValues []any) {
	if handler.Enabled(context.Background(), slog.LevelWarn) {
		var caller [1]uintptr
		runtime.Callers(3, caller[:]) // without Callers, handle and Warn
		record := slog.NewRecord(time.Now(), slog.LevelWarn, msg, caller[0])
		record.Add(keysAndValues...)
		_ = handler.Handle(context.Background(), record) // as logr and slog do: there is nowhere to report it
	}
}

func (l *logrLogger) Error(msg string, keysAndValues ...any) {
	helper, logger := l.direct().WithCallStackHelper()
	helper()
	keysAndValues, err := cutError(keysAndValues)
	logger.Error(err, msg, keysAndValues...)
}

func (l *logrLogger) With(keysAndValues ...any) Logger {
	return &logrLogger{logger: l.logger.WithValues(keysAndValues...)}
}

func (l *logrLogger) WithContext(context.Context) Logger { return l }

// cutError takes the first error under the key for errors out of keysAndValues.
func cutError(keysAndValues []any) (rest []any, err error) {
	for i := 0; i+1 < len(keysAndValues); i += 2 {
		if err, ok := keysAndValues[i+1].(error); ok && keysAndValues[i] == errorKey {
			return slices.Concat(keysAndValues[:i], keysAndValues[i+2:]), err
		}
	}
	return keysAndValues, nil
}
