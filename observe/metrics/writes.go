// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"trueup.dev/observe"
)

// writes holds the counters of writes.
type writes struct {
	mu       sync.RWMutex
	counters map[writeKey]prometheus.Counter
}

type writeKey struct {
	controller                string
	kind                      schema.GroupKind
	subresource, verb, result string
}

func (w *writes) count(l *listener, call *observe.Call) {
	key := writeKey{kind: call.Kind.GroupKind(), subresource: call.Subresource, verb: verb(call), result: result(call)}
	if call.Run != nil {
		key.controller = call.Run.Controller
	}
	w.mu.RLock()
	counter, ok := w.counters[key]
	w.mu.RUnlock()
	if !ok {
		counter = l.writesTotal.WithLabelValues(key.controller, key.kind.String(), key.subresource, key.verb, key.result)
		w.mu.Lock()
		w.counters[key] = counter
		w.mu.Unlock()
	}
	counter.Inc()
}

func verb(call *observe.Call) string {
	if call.Apply {
		return "apply"
	}
	return call.Verb
}

func result(call *observe.Call) string {
	switch {
	case apierrs.IsConflict(call.Err):
		return "conflict"
	case call.Verb == observe.VerbDelete && apierrs.IsNotFound(call.Err):
		return "unchanged" // what is to be deleted does not exist
	case call.Err != nil:
		return "failed"
	case call.DryRun:
		return "dry-run"
	case call.NoOp:
		return "unchanged"
	}
	return "changed"
}
