// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
)

// reconcilerError is the message that controller-runtime logs for every reconcile that returns an error.
const reconcilerError = "Reconciler error"

// failures is a log handler that counts failed reconciles and passes on all records.
//
// A write that the API rejects with 409 is not a failure. It was based on outdated state, because another client wrote
// first or because the cache did not contain the controller's last write. The controller retries it with the current
// state, and the transport counts it as a conflict.
type failures struct {
	next slog.Handler

	parent *failures // the handler that counts; nil in that one

	mu    sync.Mutex
	times int
	last  error
}

var _ slog.Handler = (*failures)(nil)

// Enabled implements [slog.Handler]. Errors are counted even if the log is not shown.
func (f *failures) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelError || f.next.Enabled(ctx, level)
}

// Handle implements [slog.Handler].
func (f *failures) Handle(ctx context.Context, record slog.Record) error {
	if record.Level >= slog.LevelError && record.Message == reconcilerError {
		f.root().note(reported(record))
	}
	if f.next.Enabled(ctx, record.Level) {
		return f.next.Handle(ctx, record)
	}
	return nil
}

// WithAttrs implements [slog.Handler].
func (f *failures) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &failures{next: f.next.WithAttrs(attrs), parent: f.root()}
}

// WithGroup implements [slog.Handler].
func (f *failures) WithGroup(name string) slog.Handler {
	return &failures{next: f.next.WithGroup(name), parent: f.root()}
}

func (f *failures) root() *failures {
	if f.parent != nil {
		return f.parent
	}
	return f
}

func (f *failures) note(err error) {
	if apierrs.IsConflict(err) || apierrs.IsAlreadyExists(err) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.times++
	f.last = err
}

func (f *failures) seen() (times int, last error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.times, f.last
}

// reported returns the error in a log record.
func reported(record slog.Record) error {
	err := errors.New("unknown error")
	record.Attrs(func(attr slog.Attr) bool {
		if found, ok := attr.Value.Any().(error); ok {
			err = found
			return false
		}
		return true
	})
	return err
}
