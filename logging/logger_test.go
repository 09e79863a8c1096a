// SPDX-License-Identifier: Apache-2.0

package logging_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"trueup.dev/logging"
)

var errTest = errors.New("failure of the test")

func TestLogger_source(t *testing.T) {
	for name, b := range backends() {
		t.Run(name, func(t *testing.T) {
			for _, derive := range []struct {
				name string
				from func(logging.Logger) logging.Logger
			}{
				{"plain", func(l logging.Logger) logging.Logger { return l }},
				{"With", func(l logging.Logger) logging.Logger { return l.With("key", "value") }},
				{"WithContext", func(l logging.Logger) logging.Logger { return l.WithContext(context.Background()) }},
				{"FromContext", func(l logging.Logger) logging.Logger {
					return logging.FromContext(logging.Context(context.Background(), l))
				}},
			} {
				var out bytes.Buffer
				logger := derive.from(b.logger(&out, slog.LevelDebug))
				check := func(level, file string, line int) {
					t.Helper()
					if want := fmt.Sprintf(b.where, file, line); !strings.Contains(out.String(), want) {
						t.Errorf("%s, %s: want %s in %s", derive.name, level, want, &out)
					}
					out.Reset()
				}
				file, line := here()
				logger.Debug("entry")
				check("Debug", file, line+1)
				logger.Info("entry")
				check("Info", file, line+3)
				logger.Warn("entry")
				check("Warn", file, line+5)
				logger.Error("entry", "error", errTest)
				check("Error", file, line+7)
			}
		})
	}
}

func TestLogger_levels(t *testing.T) {
	tests := map[string]struct {
		reason string
		level  slog.Level
		want   []string
	}{
		"Debug": {reason: "all levels are enabled", level: slog.LevelDebug, want: []string{"debug", "info", "warn", "error"}},
		"Info":  {reason: "Debug is disabled", level: slog.LevelInfo, want: []string{"info", "warn", "error"}},
	}
	for name, b := range backends() {
		for level, tt := range tests {
			t.Run(name+level, func(t *testing.T) {
				var out bytes.Buffer
				logger := b.logger(&out, tt.level)
				logger.Debug("message debug")
				logger.Info("message info")
				logger.Warn("message warn")
				logger.Error("message error", "error", errTest)
				got := []string{}
				for line := range strings.Lines(out.String()) {
					_, rest, _ := strings.Cut(line, "message ")
					end := strings.IndexFunc(rest, func(r rune) bool { return r < 'a' || r > 'z' })
					got = append(got, rest[:end])
					if got[len(got)-1] == "warn" && !strings.Contains(line, b.warning) {
						t.Errorf("want %s in %s", b.warning, line)
					}
					if got[len(got)-1] == "debug" && !strings.Contains(line, b.debug) {
						t.Errorf("want %s in %s", b.debug, line)
					}
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("%s: entries (-want +got):\n%s", tt.reason, diff)
				}
			})
		}
	}
}

// A slog level between the four levels enables or disables each of them, also through logr.
func TestLogger_levelsOfSlog(t *testing.T) {
	for level, want := range map[slog.Level]string{
		slog.LevelDebug:     "debug info warn error",
		slog.LevelDebug + 1: "info warn error",
		slog.LevelInfo:      "info warn error",
		slog.LevelInfo + 1:  "warn error",
		slog.LevelWarn:      "warn error",
		slog.LevelWarn + 1:  "error",
	} {
		for _, name := range []string{"Slog", "LogrOverSlog"} {
			var out bytes.Buffer
			logger := backends()[name].logger(&out, level)
			logger.Debug("debug")
			logger.Info("info")
			logger.Warn("warn")
			logger.Error("error")
			got := []string{}
			for _, entry := range entries(t, &out) {
				got = append(got, entry["msg"].(string))
			}
			if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
				t.Errorf("%s at level %s (-want +got):\n%s", name, level, diff)
			}
		}
	}
}

// The V-level of a logger is added to the level of the entry.
func TestNewLogrLogger_verbosity(t *testing.T) {
	var out bytes.Buffer
	base := logr.FromSlogHandler(jsonHandler(&out, slog.LevelDebug))
	logger := logging.NewLogrLogger(base.V(1))
	logger.Debug("too deep")
	logger.Info("info")
	logger.Warn("warn")
	got := []any{}
	for _, entry := range entries(t, &out) {
		got = append(got, entry["level"])
	}
	if diff := cmp.Diff([]any{"DEBUG+3", "INFO+3"}, got); diff != "" {
		t.Errorf("levels (-want +got):\n%s", diff)
	}
}

func TestLogger_Error(t *testing.T) {
	tests := map[string]struct {
		reason string
		values []any
		want   map[string]any
	}{
		"Error": {
			reason: "the error becomes the error of the entry", values: []any{"a", 1, "error", errTest, "b", 2},
			want: map[string]any{"error": errTest.Error(), "a": 1.0, "b": 2.0},
		},
		"NotAnError": {
			reason: "text under the key is a value", values: []any{"error", "text"},
			want: map[string]any{"error": "text"},
		},
		"OtherKey": {
			reason: "errors under other keys are values", values: []any{"cause", errTest},
			want: map[string]any{"error": nil, "cause": errTest.Error()},
		},
		"None":    {reason: "the error is optional", want: map[string]any{"error": nil}},
		"OddKeys": {reason: "a value may be missing", values: []any{"error"}, want: map[string]any{"error": "<no-value>"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			logger := funcr.NewJSON(func(obj string) { out.WriteString(obj + "\n") }, funcr.Options{})
			given := append([]any{}, tt.values...)
			logging.NewLogrLogger(logger).Error("entry", tt.values...)
			if diff := cmp.Diff(tt.want, without(entries(t, &out)[0], "logger", "msg")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
			if diff := cmp.Diff(fmt.Sprint(given), fmt.Sprint(tt.values)); diff != "" {
				t.Errorf("the caller's values have changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLogger_With(t *testing.T) {
	for _, name := range []string{"Slog", "LogrOverSlog"} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			base := backends()[name].logger(&out, slog.LevelInfo)
			derived := base.With("a", 1).With("b", 2)
			derived.Info("derived", "c", 3)
			base.Info("base")
			want := []map[string]any{
				{"level": "INFO", "msg": "derived", "a": 1.0, "b": 2.0, "c": 3.0},
				{"level": "INFO", "msg": "base"},
			}
			for i, entry := range entries(t, &out) {
				if diff := cmp.Diff(want[i], without(entry, "source")); diff != "" {
					t.Errorf("entry (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestNewLogrLogger_discards(t *testing.T) {
	for name, discard := range map[string]logr.Logger{"zero": {}, "Discard": logr.Discard()} {
		logger := logging.NewLogrLogger(discard).With("key", "value").WithContext(t.Context())
		logger.Debug(name)
		logger.Info(name)
		logger.Warn(name)
		logger.Error(name, "error", errTest)
		if ctx := logging.Context(t.Context(), logger); !logr.FromContextOrDiscard(ctx).IsZero() {
			t.Errorf("%s: got a different logger", name)
		}
	}
}

// tb records the functions that call Helper.
type tb struct {
	helpers map[string]bool
	logs    int
}

func (r *tb) Helper()    { r.helpers[callerName()] = true }
func (r *tb) Log(...any) { r.logs++ }

func TestNewLogrLogger_testHelpers(t *testing.T) {
	recorder := &tb{helpers: map[string]bool{}}
	logger := logging.NewLogrLogger(newTestLogger(recorder))
	logger.Debug("debug")
	logger.Info("info")
	logger.Warn("warn")
	logger.Error("error")
	if recorder.logs != 4 {
		t.Errorf("%d entries, want 4", recorder.logs)
	}
	for _, method := range []string{"Debug", "Info", "Warn", "Error"} {
		if name := "trueup.dev/logging.(*logrLogger)." + method; !recorder.helpers[name] {
			t.Errorf("%s did not call Helper, so the line of the test is hidden; helpers: %v", name, recorder.helpers)
		}
	}
}

// The logger of a program can be set only once: out is its output, and early is a logger made before.
var (
	programOut bytes.Buffer
	early      = logging.DefaultLogger.With("early", true)
)

func TestMain(m *testing.M) {
	early.Error("not logged")
	logging.DefaultLogger.Warn("not logged")
	log.SetLogger(logr.FromSlogHandler(jsonHandler(&programOut, slog.LevelInfo)))
	m.Run()
}

func TestDefaultLogger(t *testing.T) {
	t.Cleanup(programOut.Reset)
	file, line := here()
	logging.FromContext(t.Context()).Info("found by FromContext")
	logging.DefaultLogger.Warn("the logger itself")
	early.Warn("made before SetLogger")
	early.Error("made before SetLogger", "error", errTest)
	log.FromContext(logging.Context(t.Context(), logging.DefaultLogger)).Info("on a context")

	at := func(offset int) string { return fmt.Sprintf("%s:%d", file, line+offset) }
	want := []map[string]any{
		{"level": "INFO", "msg": "found by FromContext", "source": at(1)},
		{"level": "WARN", "msg": "the logger itself", "source": at(2)},
		{"level": "WARN", "msg": "made before SetLogger", "source": at(3), "early": true},
		{"level": "ERROR", "msg": "made before SetLogger", "source": at(4), "early": true, "err": errTest.Error()},
		{"level": "INFO", "msg": "on a context", "source": at(5)},
	}
	if diff := cmp.Diff(want, entries(t, &programOut)); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

func TestDefaultLogger_replaced(t *testing.T) {
	before := logging.DefaultLogger
	t.Cleanup(func() { logging.DefaultLogger = before })
	notes := newNotebook()
	logging.DefaultLogger = notes
	logging.FromContext(context.WithValue(t.Context(), traceKey{}, "7")).Info("entry")
	if diff := cmp.Diff([]string{"info entry [trace 7]"}, notes.lines); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}
