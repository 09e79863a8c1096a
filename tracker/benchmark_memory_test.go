// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"trueup.dev/internal/testkit/heap"
)

// BenchmarkMemory reports the memory that 100,000 observers take, for each form of reference. Names, labels and
// selectors are included, because nothing else here holds them. When all observers are forgotten, almost nothing
// remains.
func BenchmarkMemory(b *testing.B) {
	const size = 100_000
	for _, scenario := range scenarios {
		b.Run(scenario.name, func(b *testing.B) {
			for b.Loop() {
				tr := New(clientgoscheme.Scheme, time.Hour)
				empty, references := heap.InUse(), 0
				for i := range size {
					watcher := observerNamed(fmt.Sprintf("observer-%d", i))
					for _, ref := range scenario.refs(i) {
						mustTrack(b, tr, ref, watcher)
						references++
					}
				}
				b.ReportMetric(float64(heap.InUse()-empty)/float64(references), "B/reference")
				for i := range size {
					tr.(Forgetter).Forget(observerNamed(fmt.Sprintf("observer-%d", i)))
				}
				b.ReportMetric(float64(heap.InUse()-empty)/float64(references), "B/forgotten")
				runtime.KeepAlive(tr)
			}
			b.ReportMetric(0, "ns/op") // garbage collection takes most of the time
		})
	}
}
