// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc/grpclog"
	"gopkg.in/natefinch/lumberjack.v2"
	"k8s.io/klog/v2"
)

const (
	logName       = "controlplane.log"
	logMegabytes  = 20
	keptErrors    = 3
	keptErrorSize = 400
)

// componentLog receives the logs of all components. It writes them to a file in the data directory and, if requested,
// to the user's writer. It keeps the latest errors for the message of a failed start.
type componentLog struct {
	file *lumberjack.Logger
	user io.Writer

	mu     sync.Mutex
	errors []string
	closed bool
}

// newComponentLog redirects the process' logging to file and to o.LogOutput. klog and grpc have one logger per process.
// This is one reason why a process can start only one control plane.
func newComponentLog(file string, o Options) (*componentLog, error) {
	l := &componentLog{file: &lumberjack.Logger{Filename: file, MaxSize: logMegabytes, MaxBackups: 1}}
	if o.Verbosity > 0 {
		l.user = o.LogOutput
	}
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	for name, value := range map[string]string{
		"logtostderr":     "false",
		"alsologtostderr": "false",
		"stderrthreshold": "FATAL",
		"one_output":      "true", // otherwise an error is written once for each lower severity
		"v":               strconv.Itoa(o.Verbosity),
	} {
		if err := flags.Set(name, value); err != nil {
			return nil, fmt.Errorf("log flag %s: %w", name, err)
		}
	}
	klog.SetOutput(l)
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))
	return l, nil
}

// Write is called with one or more whole lines.
func (l *componentLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return len(p), nil // components that outlive the directory must not create the file again
	}
	if len(p) > 0 && (p[0] == 'E' || p[0] == 'F') {
		line := string(bytes.TrimSpace(p[:min(len(p), keptErrorSize)]))
		l.errors = append(l.errors, line)
		if len(l.errors) > keptErrors {
			l.errors = slices.Delete(l.errors, 0, 1)
		}
	}
	if l.user != nil {
		_, _ = l.user.Write(p) // a closed pipe must not stop the components
	}
	_, _ = l.file.Write(p)
	return len(p), nil
}

// Sync implements zapcore.WriteSyncer.
func (l *componentLog) Sync() error { return nil }

// recentErrors returns the latest errors, each after a line break, or "". It may be called before the log exists.
func (l *componentLog) recentErrors() string {
	if l == nil {
		return ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.errors) == 0 {
		return ""
	}
	return "\n  last logged: " + strings.Join(l.errors, "\n  last logged: ")
}

func (l *componentLog) close() {
	klog.Flush()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	_ = l.file.Close()
}

// etcdLogger writes etcd's warnings in the format of klog, and more with higher verbosity. If etcd would panic or end
// the process, the reason is sent to the channel instead.
func (l *componentLog) etcdLogger(verbosity int) (*zap.Logger, <-chan error) {
	level := zapcore.WarnLevel
	switch {
	case verbosity >= 5:
		level = zapcore.DebugLevel
	case verbosity >= 1:
		level = zapcore.InfoLevel
	}
	encoder := zapcore.NewConsoleEncoder(zapcore.EncoderConfig{
		LevelKey: "level", CallerKey: "caller", MessageKey: "message", NameKey: "name",
		LineEnding: zapcore.DefaultLineEnding,
		EncodeLevel: func(level zapcore.Level, out zapcore.PrimitiveArrayEncoder) {
			out.AppendString(strings.ToUpper(level.String()[:1]) + time.Now().Format("0102 15:04:05.000000"))
		},
		EncodeDuration: zapcore.StringDurationEncoder,
		EncodeCaller:   zapcore.ShortCallerEncoder,
	})
	panics := make(chan error, 1)
	hook := panicHook{reasons: panics}
	return zap.New(zapcore.NewCore(encoder, l, level), zap.AddCaller(), zap.WithPanicHook(hook), zap.WithFatalHook(hook)).
		Named("etcd"), panics
}

// panicHook ends the goroutine that logged a fatal entry, so that the other components can be stopped in order.
type panicHook struct{ reasons chan<- error }

// OnWrite is called by zap after the entry was written.
func (h panicHook) OnWrite(entry *zapcore.CheckedEntry, fields []zapcore.Field) {
	reason := errors.New(entry.Message)
	for _, field := range fields {
		if err, ok := field.Interface.(error); ok && field.Type == zapcore.ErrorType {
			reason = fmt.Errorf("%s: %w", entry.Message, err)
		}
	}
	select {
	case h.reasons <- reason:
	default: // an earlier entry is the reason
	}
	runtime.Goexit()
}
