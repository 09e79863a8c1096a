// SPDX-License-Identifier: Apache-2.0

package logging_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2/textlogger"

	"trueup.dev/logging"
)

// backend is a destination of log entries.
type backend struct {
	// logger returns a logger that writes entries of the level or above to out.
	logger func(out *bytes.Buffer, level slog.Level) logging.Logger
	// warning is the text that marks an entry of Warn in out.
	warning string
	// debug is the text that marks an entry of Debug.
	debug string
	// where is the format of file and line.
	where string
}

func jsonHandler(out *bytes.Buffer, level slog.Level) slog.Handler {
	return slog.NewJSONHandler(out, &slog.HandlerOptions{
		AddSource: true, Level: level,
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if source, ok := a.Value.Any().(*slog.Source); ok {
				return slog.String(a.Key, fmt.Sprintf("%s:%d", filepath.Base(source.File), source.Line))
			}
			if a.Key == slog.TimeKey && len(groups) == 0 {
				return slog.Attr{}
			}
			return a
		},
	})
}

// verbosity returns the V-level of a slog level.
func verbosity(level slog.Level) int {
	if level < slog.LevelInfo {
		return 1
	}
	return 0
}

func backends() map[string]backend {
	return map[string]backend{
		"Slog": {
			logger: func(out *bytes.Buffer, level slog.Level) logging.Logger {
				return logging.NewSLogLogger(jsonHandler(out, level))
			},
			warning: `"level":"WARN"`, debug: `"level":"DEBUG"`, where: `"source":"%s:%d"`,
		},
		"LogrOverSlog": {
			logger: func(out *bytes.Buffer, level slog.Level) logging.Logger {
				return logging.NewLogrLogger(logr.FromSlogHandler(jsonHandler(out, level)))
			},
			warning: `"level":"WARN"`, debug: `"level":"DEBUG"`, where: `"source":"%s:%d"`,
		},
		"SlogFoundByLogr": {
			logger: func(out *bytes.Buffer, level slog.Level) logging.Logger {
				ctx := logging.Context(context.Background(), logging.NewSLogLogger(jsonHandler(out, level)))
				return logging.NewLogrLogger(logr.FromContextOrDiscard(ctx))
			},
			warning: `"severity":"warning"`, debug: `"level":"DEBUG+3"`, where: `"source":"%s:%d"`,
		},
		"Funcr": {
			logger: func(out *bytes.Buffer, level slog.Level) logging.Logger {
				return logging.NewLogrLogger(funcr.NewJSON(func(obj string) { out.WriteString(obj + "\n") }, funcr.Options{
					LogCaller: funcr.All, Verbosity: verbosity(level),
				}))
			},
			warning: `"severity":"warning"`, debug: `"level":1`, where: `"caller":{"file":"%s","line":%d}`,
		},
		"Klog": {
			logger: func(out *bytes.Buffer, level slog.Level) logging.Logger {
				return logging.NewLogrLogger(
					textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(out), textlogger.Verbosity(verbosity(level)))),
				)
			},
			warning: "W", debug: "I", where: " %s:%d] ",
		},
	}
}

// here returns the name of the caller's file and the line of the call.
func here() (file string, line int) {
	_, file, line, _ = runtime.Caller(1)
	return filepath.Base(file), line
}

// entries decodes the JSON lines that a handler wrote.
func entries(t *testing.T, out *bytes.Buffer) []map[string]any {
	t.Helper()
	found := []map[string]any{}
	for line := range strings.Lines(out.String()) {
		entry := map[string]any{}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		found = append(found, entry)
	}
	return found
}

// without returns an entry without its source location and the given keys.
func without(entry map[string]any, keys ...string) map[string]any {
	entry = maps.Clone(entry)
	for _, key := range keys {
		delete(entry, key)
	}
	return entry
}

// notebook is a Logger of a user, not of this package.
type notebook struct {
	*notes
	values []any
}

type notes struct {
	mu    sync.Mutex
	lines []string
}

func newNotebook() *notebook { return &notebook{notes: &notes{}} }

func (n *notebook) note(level, msg string, keysAndValues []any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, fmt.Sprint(level, " ", msg, " ", append(append([]any{}, n.values...), keysAndValues...)))
}

func (n *notebook) Debug(msg string, kv ...any) { n.note("debug", msg, kv) }
func (n *notebook) Info(msg string, kv ...any)  { n.note("info", msg, kv) }
func (n *notebook) Warn(msg string, kv ...any)  { n.note("warn", msg, kv) }
func (n *notebook) Error(msg string, kv ...any) { n.note("error", msg, kv) }

func (n *notebook) With(kv ...any) logging.Logger {
	return &notebook{notes: n.notes, values: append(append([]any{}, n.values...), kv...)}
}

func (n *notebook) WithContext(ctx context.Context) logging.Logger {
	if id, ok := ctx.Value(traceKey{}).(string); ok {
		return n.With("trace", id)
	}
	return n
}

type traceKey struct{}
