// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"trueup.dev/observe"
)

// maxLines is the number of objects whose last line is kept.
const maxLines = 10_000

// line is the line of a reconcile.
type line struct {
	message string
	object  []any // the keys and values that identify the object
	record  *record
	failed  bool
	errors  string
	result  string
	causes  []string
	// at is the time of the first of these lines, and repeated is the number of lines that were not written since.
	at       time.Time
	repeated int
}

func newLine(e *observe.ReconcileFinished, r *record) *line {
	l := &line{
		message: "Reconciled", result: "success", causes: causes(e.Run), record: r, at: e.Run.Started.Add(e.Duration),
		object: []any{"controller", e.Run.Controller, "namespace", e.Run.Object.Namespace, "name", e.Run.Object.Name},
	}
	if cluster := e.Run.Cluster(); cluster != "" {
		l.object = append(l.object, "cluster", cluster)
	}
	switch {
	case e.Panicked:
		l.message, l.result, l.failed = "Reconcile panicked", "panic", true
	case e.Err != nil:
		l.message, l.result, l.failed, l.errors = "Reconcile failed", "error", true, e.Err.Error()
	case e.Result.RequeueAfter > 0:
		l.result = "requeue after " + e.Result.RequeueAfter.String()
	case !e.Result.IsZero():
		l.result = "requeue"
	}
	return l
}

// values returns the keys and values of the line after the object.
func (l *line) values(e *observe.ReconcileFinished) []any {
	values := []any{"reconcileID", e.Run.ID, "causes", l.causes}
	if len(l.record.steps) > 0 {
		values = append(values, "steps", l.record.steps)
	}
	if writes := l.record.writes; len(writes) > 0 {
		if l.record.omitted > 0 {
			writes = append(writes, fmt.Sprintf("and %d more", l.record.omitted))
		}
		values = append(values, "writes", writes)
	}
	if l.record.loop {
		values = append(values, "loop", true)
	}
	values = append(values, "duration", e.Duration.Round(time.Microsecond).String(), "result", l.result)
	if len(e.Failures) > 0 {
		var origins []string
		for _, f := range e.Failures {
			origins = append(origins, f.Origin())
		}
		values = append(values, "failed", origins)
	}
	if l.errors != "" {
		values = append(values, "error", l.errors)
	}
	return values
}

// equal reports whether two lines differ at most in the reconcile ID, the duration and the causes. A retry has another
// cause than the reconcile before.
func (l *line) equal(other *line) bool {
	return l.message == other.message && l.result == other.result && l.errors == other.errors &&
		l.record.omitted == other.record.omitted && l.record.loop == other.record.loop &&
		strings.Join(l.record.writes, "\n") == strings.Join(other.record.writes, "\n")
}

type key struct {
	controller string
	object     types.NamespacedName
}

// lines holds the last line of each object.
type lines struct {
	interval time.Duration
	failing  atomic.Int64 // the number of failed lines
	mu       sync.Mutex
	last     map[key]*line
}

// recovers reports whether the reconcile of an object failed before.
func (l *lines) recovers(run *observe.Run) bool {
	if l.failing.Load() == 0 {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	last := l.last[key{run.Name(), run.Object}]
	return last != nil && last.failed
}

// next sets the last line of an object. It returns the line before that ends, if any, and whether the new line must be
// written.
func (l *lines) next(run *observe.Run, added *line) (ended *line, write bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	object := key{run.Name(), run.Object}
	last := l.last[object]
	if last != nil && last.equal(added) && added.at.Sub(last.at) < l.interval {
		last.repeated++
		return nil, false
	}
	for other := range l.last {
		if last != nil || len(l.last) < maxLines {
			break
		}
		l.remove(other)
	}
	l.remove(object)
	l.last[object] = added
	if added.failed {
		l.failing.Add(1)
	}
	return last, true
}

// forget drops the lines of the objects of a cluster.
func (l *lines) forget(cluster string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for object := range l.last {
		if _, of, found := strings.Cut(object.controller, "@"); found && of == cluster {
			l.remove(object)
		}
	}
}

func (l *lines) remove(object key) {
	if last := l.last[object]; last != nil && last.failed {
		l.failing.Add(-1)
	}
	delete(l.last, object)
}
