// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"trueup.dev/observe"
)

// maxWrites is the number of writes of a reconcile in its line.
const maxWrites = 20

// Options are options of [New].
type Options struct {
	// Verbosity is the verbosity of the lines, as in [logr.Logger.V]. Defaults to 0, so that a logger with the default
	// level writes them.
	Verbosity int
	// RepeatInterval is the time after which an equal line is written again. Defaults to 10 minutes.
	RepeatInterval time.Duration
}

// New returns a listener that writes to a logger. It keeps the last lines of at most 10,000 objects. It is safe for
// concurrent use, and may be added to several hubs.
func New(logger logr.Logger, options Options) observe.Listener {
	return &listener{
		log: logger.V(options.Verbosity), records: map[*observe.Run]*record{},
		lines: lines{interval: cmp.Or(options.RepeatInterval, 10*time.Minute), last: map[key]*line{}},
	}
}

type listener struct {
	log logr.Logger

	length  atomic.Int64 // the number of records
	mu      sync.Mutex
	records map[*observe.Run]*record
	lines   lines
}

// record holds what a running reconcile did so far.
type record struct {
	writes  []string
	omitted int      // the number of writes that are not in writes
	steps   []string // the steps that wrote
	loop    bool
	waits   bool // whether the reconcile only waits for the caches
}

// Observe implements [observe.Listener]. It returns ctx.
func (l *listener) Observe(ctx context.Context, event observe.Event) context.Context {
	switch e := event.(type) {
	case *observe.Call:
		if e.Run != nil && e.IsWrite() && !e.DryRun && l.log.Enabled() {
			l.record(e.Run, func(r *record) { r.wrote(e) })
		}
	case *observe.LoopFound:
		if e.Run != nil && l.log.Enabled() {
			l.record(e.Run, func(r *record) { r.loop = true })
		}
	case *observe.StaleWait:
		if e.Run != nil && l.lines.failing.Load() > 0 {
			l.record(e.Run, func(r *record) { r.waits = true })
		}
	case *observe.ClusterChanged:
		if e.State == observe.ClusterGone {
			l.lines.forget(e.Cluster)
		}
	case *observe.ReconcileFinished:
		l.finished(e)
	}
	return ctx
}

func (l *listener) record(run *observe.Run, add func(*record)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.records[run]
	if r == nil {
		r = &record{}
		l.records[run] = r
		l.length.Store(int64(len(l.records)))
	}
	add(r)
}

// take returns the record of a run, and forgets it.
func (l *listener) take(run *observe.Run) *record {
	if l.length.Load() == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.records[run]
	delete(l.records, run)
	l.length.Store(int64(len(l.records)))
	return r
}

func (l *listener) finished(e *observe.ReconcileFinished) {
	r := l.take(e.Run)
	failed := e.Err != nil || e.Panicked
	if !l.log.Enabled() || r == nil && !failed && !l.lines.recovers(e.Run) {
		return
	}
	switch {
	case r == nil:
		r = &record{}
	case r.waits && !failed:
		return
	}
	written := newLine(e, r)
	before, now := l.lines.next(e.Run, written)
	if before != nil && before.repeated > 0 {
		l.log.Info(fmt.Sprintf("Repeated %d times: %s", before.repeated, before.message), before.object...)
	}
	if now {
		l.log.Info(written.message, slices.Concat(written.object, written.values(e))...)
	}
}

func (r *record) wrote(call *observe.Call) {
	if step := strings.Join(call.Path, "."); step != "" && !slices.Contains(r.steps, step) {
		r.steps = append(r.steps, step)
	}
	if len(r.writes) == maxWrites {
		r.omitted++
		return
	}
	verb := call.Verb
	if call.Apply {
		verb = "apply"
	}
	text := verb + " " + call.Kind.GroupKind().String()
	if call.Subresource != "" {
		text += "/" + call.Subresource
	}
	text += " " + named(call.Object)
	switch {
	case call.Err != nil:
		text += ": " + call.Err.Error()
	case call.NoOp:
		text += ": unchanged"
	}
	r.writes = append(r.writes, text)
}

func named(object types.NamespacedName) string {
	if object.Namespace == "" {
		return object.Name
	}
	return object.String()
}

// causes describes the causes of a run.
func causes(run *observe.Run) []string {
	var texts []string
	for i := range run.Causes {
		cause := &run.Causes[i]
		text := string(cause.Type)
		if cause.Kind.Kind != "" {
			text += fmt.Sprintf(" %s %s %s", cause.Kind.GroupKind(), named(cause.Object), cause.Verb)
		}
		if parts := cause.Parts(); len(parts) > 0 {
			text += ": " + strings.Join(parts, ", ")
		}
		if by := cause.By(); by != "" && cause.Verb == observe.Updated {
			text += " by " + by
		}
		texts = append(texts, text)
	}
	if run.OmittedCauses > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", run.OmittedCauses))
	}
	return texts
}
