// SPDX-License-Identifier: Apache-2.0

package logging

import (
	"context"
	"log/slog"
	"runtime"
	"time"
)

// slogLogger writes to a slog handler.
type slogLogger struct {
	handler slog.Handler
	ctx     context.Context
}

func (l *slogLogger) Debug(msg string, keysAndValues ...any) {
	l.log(0, slog.LevelDebug, msg, keysAndValues)
}

func (l *slogLogger) Info(msg string, keysAndValues ...any) {
	l.log(0, slog.LevelInfo, msg, keysAndValues)
}

func (l *slogLogger) Warn(msg string, keysAndValues ...any) {
	l.log(0, slog.LevelWarn, msg, keysAndValues)
}

func (l *slogLogger) Error(msg string, keysAndValues ...any) {
	l.log(0, slog.LevelError, msg, keysAndValues)
}

func (l *slogLogger) With(keysAndValues ...any) Logger {
	return &slogLogger{handler: slog.New(l.handler).With(keysAndValues...).Handler(), ctx: l.ctx}
}

func (l *slogLogger) WithContext(ctx context.Context) Logger {
	return &slogLogger{handler: l.handler, ctx: ctx}
}

// log writes an entry for the caller of the method that called log. If depth is not zero, the entry is for a caller
// further up.
func (l *slogLogger) log(depth int, level slog.Level, msg string, keysAndValues []any) {
	if !l.handler.Enabled(l.ctx, level) {
		return
	}
	var caller [1]uintptr
	runtime.Callers(3+depth, caller[:]) // skips Callers, log and the method
	record := slog.NewRecord(time.Now(), level, msg, caller[0])
	record.Add(keysAndValues...)
	_ = l.handler.Handle(l.ctx, record) // ignored, as slog does
}
