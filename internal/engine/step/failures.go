// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"reflect"
)

// Failure describes the origin of an error of a request.
type Failure struct {
	// Path is the names of the steps from the root to the innermost one that returned the error, joined with dots.
	Path string
	// Object is the object that the error is about, for example "Secret default/db". It is empty if no step has named one.
	Object string
	// Err is the error as the innermost step returned it.
	Err error
	// Recorded reports whether an event was already recorded for the error.
	Recorded bool
}

// Origin returns the origin of the failure: the path of the step and, if known, the object.
func (f Failure) Origin() string { return Origin(f.Path, f.Object) }

// Origin returns the text for the origin of a failure: the path of the step and the object, without those that are
// empty.
func Origin(path, object string) string {
	if path == "" || object == "" {
		return path + object
	}
	return path + ": " + object
}

type failure struct {
	// names are the names of the steps that the error has passed, innermost first.
	names    []string
	object   string
	err      error
	recorded bool
}

// About names the object that err is about. The first name for an error is kept, because it comes from the step closest
// to the call. About does nothing if err is nil, or outside of a request.
func About(ctx context.Context, err error, object string) {
	if f, unlock := find(ctx, err); f != nil {
		defer unlock()
		if f.object == "" {
			f.object = object
		}
	}
}

// Recorded records that an event was recorded for err.
func Recorded(ctx context.Context, err error) {
	if f, unlock := find(ctx, err); f != nil {
		defer unlock()
		f.recorded = true
	}
}

// find returns the failure for err that was recorded since the current step started. If there is none, it adds one. The
// trace stays locked until unlock is called.
func find(ctx context.Context, err error) (found *failure, unlock func()) {
	t := Of(ctx)
	if t == nil || err == nil || t.ignores(err) {
		return nil, nil
	}
	t.mu.Lock()
	for i := len(t.failures) - 1; i >= 0; i-- {
		// A failure with names has passed a step. Another reconciler may have returned the same error.
		if f := t.failures[i]; len(f.names) == 0 && contains(err, f.err) {
			return f, t.mu.Unlock
		}
	}
	found = &failure{err: err}
	t.keep(append(t.failures, found))
	return found, t.mu.Unlock
}

// Failures returns the origins of err, which the root returns. An error that joins several errors has several origins.
func (t *Trace) Failures(err error) []Failure {
	t.mu.Lock()
	defer t.mu.Unlock()
	failures := []Failure{}
	for _, f := range t.failures {
		if err != nil && contains(err, f.err) {
			failures = append(failures, Failure{Path: joined(f.names), Object: f.object, Err: f.err, Recorded: f.recorded})
		}
	}
	return failures
}

// length is the number of failures so far.
func (t *Trace) length() int {
	if t == nil {
		return 0
	}
	return int(t.noted.Load())
}

func (t *Trace) ignores(err error) bool { return t.Ignore != nil && t.Ignore(err) }

// passes records that a step returned err. It adds the name of the step to the failures below it that are part of err,
// and drops the others, which were handled.
func (t *Trace) passes(name string, before int, err error) {
	failed := err != nil && !t.ignores(err)
	if !failed && t.length() <= before {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	// A step in another goroutine may have dropped some.
	before = min(before, len(t.failures))
	kept := t.failures[:before:before]
	if failed {
		for _, f := range t.failures[before:] {
			if contains(err, f.err) {
				kept = append(kept, f)
			}
		}
		if len(kept) == before {
			kept = append(kept, &failure{err: err})
		}
	}
	for _, f := range kept[before:] {
		f.names = append(f.names, name)
	}
	t.keep(kept)
}

func (t *Trace) keep(failures []*failure) {
	t.failures = failures
	t.noted.Store(int64(len(failures)))
}

// contains reports whether part is err, or one of the errors that err wraps or joins. Unlike [errors.Is] it does not
// call methods Is of errors, and it compares errors that Go cannot compare with ==.
func contains(err, part error) bool {
	if equal(err, part) {
		return true
	}
	switch err := err.(type) { //nolint:errorlint // each level is handled separately
	case interface{ Unwrap() error }:
		inner := err.Unwrap()
		return inner != nil && contains(inner, part)
	case interface{ Unwrap() []error }:
		return anyContains(err.Unwrap(), part)
	case interface{ Errors() []error }: // the aggregates of apimachinery
		return anyContains(err.Errors(), part)
	}
	return false
}

func anyContains(errs []error, part error) bool {
	for _, err := range errs {
		if err != nil && contains(err, part) {
			return true
		}
	}
	return false
}

func equal(a, b error) bool {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	if x.Type() != y.Type() {
		return false
	}
	if x.Comparable() && y.Comparable() {
		return a == b //nolint:errorlint // identity
	}
	return reflect.DeepEqual(a, b)
}
