// SPDX-License-Identifier: Apache-2.0

package logging_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"trueup.dev/logging"
)

func callerName() string {
	pc, _, _, _ := runtime.Caller(2)
	return runtime.FuncForPC(pc).Name()
}

func newTestLogger(t testr.TestingT) logr.Logger {
	return testr.NewWithInterface(t, testr.Options{Verbosity: 1})
}

// FromContext finds a logr logger on the context, with its names and values.
func TestFromContext_logr(t *testing.T) {
	var out bytes.Buffer
	base := logr.FromSlogHandler(jsonHandler(&out, slog.LevelInfo)).WithName("controller").WithValues("namespace", "ns")
	ctx := log.IntoContext(t.Context(), base)
	logging.FromContext(ctx).With("a", 1).Warn("entry", "b", 2)
	want := map[string]any{"level": "WARN", "msg": "entry", "logger": "controller", "namespace": "ns", "a": 1.0, "b": 2.0}
	if diff := cmp.Diff(want, without(entries(t, &out)[0], "source")); diff != "" {
		t.Errorf("entry (-want +got):\n%s", diff)
	}
}

// traces is a handler that reads the trace from the context.
type traces struct{ slog.Handler }

func (h traces) Handle(ctx context.Context, record slog.Record) error {
	if id, ok := ctx.Value(traceKey{}).(string); ok {
		record.Add("trace", id)
	}
	return h.Handler.Handle(ctx, record)
}

func (h traces) WithAttrs(attrs []slog.Attr) slog.Handler { return traces{h.Handler.WithAttrs(attrs)} }

func TestContext_slog(t *testing.T) {
	var out bytes.Buffer
	handler := traces{jsonHandler(&out, slog.LevelDebug)}
	ctx := context.WithValue(t.Context(), traceKey{}, "1")
	ctx = logging.Context(ctx, logging.NewSLogLogger(handler).With("a", 1))

	file, line := here()
	logging.FromContext(ctx).Debug("unchanged")
	log.FromContext(ctx).Info("found by logr")
	log.FromContext(ctx).WithCallDepth(0).V(4).Info("debugging with logr")
	log.FromContext(ctx).Error(errTest, "failed", "b", 2)
	log.FromContext(ctx).Error(nil, "failed without an error")

	named := log.IntoContext(ctx, log.FromContext(ctx, "c", 3).WithName("outer").WithName("inner"))
	logging.FromContext(named).Warn("named through logr")
	log.FromContext(named).Info("named")
	verbose := log.IntoContext(ctx, log.FromContext(ctx).V(1))
	logging.FromContext(verbose).Info("at a higher level")
	logging.FromContext(context.WithValue(ctx, traceKey{}, "2")).Info("in another trace")

	at := func(offset int) string { return fmt.Sprintf("%s:%d", file, line+offset) }
	want := []map[string]any{
		{"level": "DEBUG", "msg": "unchanged", "source": at(1), "a": 1.0, "trace": "1"},
		{"level": "INFO", "msg": "found by logr", "source": at(2), "a": 1.0},
		{"level": "DEBUG", "msg": "debugging with logr", "source": at(3), "a": 1.0},
		{"level": "ERROR", "msg": "failed", "source": at(4), "a": 1.0, "b": 2.0, "error": errTest.Error()},
		{"level": "ERROR", "msg": "failed without an error", "source": at(5), "a": 1.0},
		{
			"level":  "WARN",
			"msg":    "named through logr",
			"source": at(8),
			"a":      1.0,
			"c":      3.0,
			"logger": "outer/inner",
			"trace":  "1",
		},
		{"level": "INFO", "msg": "named", "source": at(9), "a": 1.0, "c": 3.0, "logger": "outer/inner"},
		{"level": "DEBUG+3", "msg": "at a higher level", "source": at(11), "a": 1.0},
		{"level": "INFO", "msg": "in another trace", "source": at(12), "a": 1.0, "trace": "2"},
	}
	if diff := cmp.Diff(want, entries(t, &out)); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

func TestContext_slogLevels(t *testing.T) {
	var out bytes.Buffer
	ctx := logging.Context(t.Context(), logging.NewSLogLogger(jsonHandler(&out, slog.LevelWarn)))
	if logger := log.FromContext(ctx); logger.Enabled() {
		t.Error("logr reports that Info is enabled")
	}
	log.FromContext(ctx).Info("not logged")
	if out.Len() != 0 {
		t.Errorf("logged %s", &out)
	}
}

func TestContext_ownLogger(t *testing.T) {
	notes := newNotebook()
	ctx := logging.Context(context.WithValue(t.Context(), traceKey{}, "1"), notes.With("a", 1))
	logging.FromContext(ctx).Warn("unchanged", "b", 2)
	logger := log.FromContext(ctx).WithName("outer").WithValues("c", 3)
	logger.Info("info", "d", 4)
	logger.V(1).Info("debug")
	logger.Error(errTest, "error")
	want := []string{
		"warn unchanged [a 1 trace 1 b 2]",
		"info info [a 1 c 3 logger outer d 4]",
		"debug debug [a 1 c 3 logger outer]",
		"error error [a 1 c 3 logger outer error failure of the test]",
	}
	if diff := cmp.Diff(want, notes.lines); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}
