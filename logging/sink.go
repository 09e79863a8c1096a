// SPDX-License-Identifier: Apache-2.0

package logging

import (
	"log/slog"
	"slices"

	"github.com/go-logr/logr"
)

// sink makes a Logger available to users of logr.
type sink struct {
	logger Logger
	name   string
	depth  int
}

var _ logr.CallDepthLogSink = (*sink)(nil)

// named returns the logger with the name that was set through logr. In logr the name is not a value.
func (s *sink) named() Logger {
	if s.name == "" {
		return s.logger
	}
	return s.logger.With("logger", s.name)
}

func (s *sink) Init(info logr.RuntimeInfo) { s.depth = info.CallDepth }

func (s *sink) Enabled(level int) bool {
	l, ok := s.logger.(*slogLogger)
	return !ok || l.handler.Enabled(l.ctx, slog.Level(-level))
}

func (s *sink) Info(level int, msg string, keysAndValues ...any) {
	switch l := s.named().(type) {
	case *slogLogger:
		l.log(s.depth, slog.Level(-level), msg, keysAndValues)
	default:
		if level > 0 {
			l.Debug(msg, keysAndValues...)
		} else {
			l.Info(msg, keysAndValues...)
		}
	}
}

func (s *sink) Error(err error, msg string, keysAndValues ...any) {
	if err != nil {
		keysAndValues = slices.Concat([]any{errorKey, err}, keysAndValues)
	}
	switch l := s.named().(type) {
	case *slogLogger:
		l.log(s.depth, slog.LevelError, msg, keysAndValues)
	default:
		l.Error(msg, keysAndValues...)
	}
}

func (s *sink) WithValues(keysAndValues ...any) logr.LogSink {
	return &sink{logger: s.logger.With(keysAndValues...), name: s.name, depth: s.depth}
}

func (s *sink) WithName(name string) logr.LogSink {
	if s.name != "" {
		name = s.name + "/" + name
	}
	return &sink{logger: s.logger, name: name, depth: s.depth}
}

func (s *sink) WithCallDepth(depth int) logr.LogSink {
	return &sink{logger: s.logger, name: s.name, depth: s.depth + depth}
}
