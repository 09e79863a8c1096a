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

// errorKey is the key whose error becomes the error of the entry.
const errorKey = "error"

// logrLogger writes to logr.
//
// Sinks find the caller by counting frames: each method must call the logr.Logger, or in its place the sink, itself.
type logrLogger struct{ logger logr.Logger }

// direct returns the logger without the sink in which controller-runtime waits for SetLogger. That sink stays in
// loggers made before SetLogger, adds a frame, and hides the capabilities of the sink behind it. WithValues without
// values bypasses it.
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
		// Use the level of slog instead of one slightly below INFO.
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

// takesWarnings reports whether a sink supports the warnings of slog. The sink of funcr treats them as information.
func takesWarnings(sink logr.LogSink) bool {
	_, takesRecords := sink.(logr.SlogSink)
	_, isFuncr := sink.(funcr.Underlier)
	return takesRecords && !isFuncr
}

// handle passes a warning to a handler on behalf of the caller of Warn.
func handle(handler slog.Handler, msg string, keysAndValues []any) {
	if handler.Enabled(context.Background(), slog.LevelWarn) {
		var caller [1]uintptr
		runtime.Callers(3, caller[:]) // skips Callers, handle and Warn
		record := slog.NewRecord(time.Now(), slog.LevelWarn, msg, caller[0])
		record.Add(keysAndValues...)
		_ = handler.Handle(context.Background(), record) // ignored, as logr and slog do
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

// cutError removes the first error under the key for errors from keysAndValues.
func cutError(keysAndValues []any) (rest []any, err error) {
	for i := 0; i+1 < len(keysAndValues); i += 2 {
		if err, ok := keysAndValues[i+1].(error); ok && keysAndValues[i] == errorKey {
			return slices.Concat(keysAndValues[:i], keysAndValues[i+2:]), err
		}
	}
	return keysAndValues, nil
}
