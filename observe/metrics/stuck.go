// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"trueup.dev/observe"
)

// stuck holds the runs that are stuck, with the gauges that count them.
type stuck struct {
	length atomic.Int64
	mu     sync.Mutex
	gauges map[*observe.Run]prometheus.Gauge
}

func (s *stuck) add(run *observe.Run, gauge prometheus.Gauge) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gauges == nil {
		s.gauges = map[*observe.Run]prometheus.Gauge{}
	}
	s.gauges[run] = gauge
	s.length.Store(int64(len(s.gauges)))
	gauge.Inc()
}

// remove handles the end of a run.
func (s *stuck) remove(run *observe.Run) {
	if s.length.Load() == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if gauge := s.gauges[run]; gauge != nil {
		gauge.Dec()
		delete(s.gauges, run)
		s.length.Store(int64(len(s.gauges)))
	}
}
