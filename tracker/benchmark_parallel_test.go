// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// BenchmarkParallel looks up and renews from eight goroutines and from one, in turns, and reports the speedup. At best
// it is the number of processors: run it with -cpu 1,2,4,8. Other processes may use the processors too, so it takes the
// fastest of many short turns.
func BenchmarkParallel(b *testing.B) {
	const size, goroutines, operations = 1000, 8, 16_000
	for _, scenario := range scenarios[:len(scenarios)-1] {
		var (
			events     [size]*corev1.ConfigMap
			references [size]Reference
			watchers   [size]client.Object
		)
		for i := range size {
			events[i], references[i] = eventFor(scenario.refs, i), scenario.refs(i)[0]
			watchers[i] = observerNamed(fmt.Sprintf("observer-%d-0", i))
		}
		tr := filled(b, size, scenario.refs)
		for name, operation := range map[string]func(i int) error{
			"look-up": func(i int) error { _, err := tr.GetObservers(events[i]); return err },
			"renew":   func(i int) error { return tr.TrackReference(references[i], watchers[i]) },
		} {
			b.Run(scenario.name+"/"+name, func(b *testing.B) {
				turn := func(goroutines int) time.Duration {
					var working sync.WaitGroup
					start := time.Now()
					for g := range goroutines {
						working.Go(func() {
							for i := range operations / goroutines {
								if err := operation((i + g*size/goroutines) % size); err != nil {
									b.Error(err)
								}
							}
						})
					}
					working.Wait()
					return time.Since(start)
				}
				one, all := turn(1), turn(goroutines)
				for b.Loop() {
					one, all = min(one, turn(1)), min(all, turn(goroutines))
				}
				b.ReportMetric(float64(one)/operations, "ns/op-of-one")
				b.ReportMetric(float64(all)/operations, "ns/op-of-eight")
				b.ReportMetric(float64(one)/float64(all), "x")
				b.ReportMetric(0, "ns/op") // the time of one turn has no meaning
			})
		}
	}
}

// BenchmarkGetObserversWhileTracking looks up from all processors while one
// goroutine renews tracks, and adds and forgets others.
func BenchmarkGetObserversWhileTracking(b *testing.B) {
	const size = 10_000
	for _, scenario := range scenarios {
		b.Run(fmt.Sprintf("%s/%d", scenario.name, size), func(b *testing.B) {
			tr := filled(b, size, scenario.refs)
			ref, obj := scenario.refs(0)[0], observerNamed("observer-0-0")
			other, guest := scenario.refs(size)[0], observerNamed("guest")
			stop := make(chan struct{})
			var tracking sync.WaitGroup
			tracking.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						_ = tr.TrackReference(ref, obj)
						_ = tr.TrackReference(other, guest)
						tr.(Forgetter).Forget(guest)
					}
				}
			})
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					_, _ = tr.GetObservers(changed)
				}
			})
			b.StopTimer()
			close(stop)
			tracking.Wait()
		})
	}
}
