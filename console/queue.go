// SPDX-License-Identifier: Apache-2.0

package console

import (
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Queue is the queue of a controller and its workers, from the metrics of controller-runtime.
type Queue struct {
	// Waiting is the number of requests in the queue, without those that are delayed.
	Waiting int `json:"waiting"`
	// Busy is the number of workers that reconcile now, and Workers the number of all.
	Busy    int `json:"busy"`
	Workers int `json:"workers"`
	// Retries is the number of requests that were added with back-off.
	Retries int64 `json:"retries"`
	// Wait is the mean time of a request in the queue. Almost all, 99 %, waited for at most WaitMost. It is 0 if it is
	// above the highest bucket of the histogram, or if no request has been taken.
	Wait     time.Duration `json:"waitNs"`
	WaitMost time.Duration `json:"waitMostNs,omitempty"`
}

// queues reads the metrics at most once a second.
type queues struct {
	mu   sync.Mutex
	read time.Time
	all  map[string]*Queue
}

// of returns the queue of a controller, which several clusters share. It is nil if the controller has no metrics in
// this process.
func (q *queues) of(controller string) *Queue {
	q.mu.Lock()
	defer q.mu.Unlock()
	if time.Since(q.read) > interval {
		q.read, q.all = time.Now(), readQueues()
	}
	name, _, _ := strings.Cut(controller, "@")
	return q.all[name]
}

func readQueues() map[string]*Queue {
	all := map[string]*Queue{}
	families, err := metrics.Registry.Gather()
	if err != nil && len(families) == 0 {
		return all
	}
	for _, family := range families {
		name := family.GetName()
		if !strings.HasPrefix(name, "workqueue_") && !strings.HasPrefix(name, "controller_runtime_") {
			continue
		}
		for _, metric := range family.GetMetric() {
			controller := ""
			for _, label := range metric.GetLabel() {
				if label.GetName() == "controller" {
					controller = label.GetValue()
				}
			}
			if controller == "" {
				continue
			}
			queue := all[controller]
			if queue == nil {
				queue = &Queue{}
				all[controller] = queue
			}
			switch name {
			case "workqueue_depth": // a series for each priority
				queue.Waiting += int(metric.GetGauge().GetValue())
			case "controller_runtime_active_workers":
				queue.Busy = int(metric.GetGauge().GetValue())
			case "controller_runtime_max_concurrent_reconciles":
				queue.Workers = int(metric.GetGauge().GetValue())
			case "workqueue_retries_total":
				queue.Retries = int64(metric.GetCounter().GetValue())
			case "workqueue_queue_duration_seconds":
				histogram := metric.GetHistogram()
				count := histogram.GetSampleCount()
				if count == 0 {
					continue
				}
				queue.Wait = seconds(histogram.GetSampleSum() / float64(count))
				for _, bucket := range histogram.GetBucket() {
					if float64(bucket.GetCumulativeCount()) >= 0.99*float64(count) {
						queue.WaitMost = seconds(bucket.GetUpperBound())
						break
					}
				}
			}
		}
	}
	return all
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
