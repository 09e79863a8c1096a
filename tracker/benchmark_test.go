// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

var sizes = []int{100, 10_000, 100_000}

// trackers by what the observers watch; a lookup of changed finds one observer,
// but for "shared", which finds all.
var scenarios = []struct {
	name string
	ref  func(i int) Reference
}{
	{"selectors", func(i int) Reference {
		return Reference{Kind: "ConfigMap", Namespace: "ns", Selector: labels.SelectorFromSet(labels.Set{"app": fmt.Sprintf("app-%d", i)})}
	}},
	{"selectors-in-100-namespaces", func(i int) Reference {
		return Reference{Kind: "ConfigMap", Namespace: namespaceOf(i), Selector: labels.SelectorFromSet(labels.Set{"app": fmt.Sprintf("app-%d", i)})}
	}},
	{"exact", func(i int) Reference {
		return Reference{Kind: "ConfigMap", Namespace: "ns", Name: fmt.Sprintf("app-%d", i)}
	}},
	{"shared", func(int) Reference {
		return Reference{Kind: "ConfigMap", Namespace: "ns", Name: "app-0"}
	}},
}

func namespaceOf(i int) string {
	if i%100 == 0 {
		return "ns"
	}
	return fmt.Sprintf("ns-%d", i%100)
}

var changed = &corev1.ConfigMap{ObjectMeta: metaOf("ns", "app-0", map[string]string{"app": "app-0", "tier": "web"})}

func filled(b *testing.B, size int, ref func(int) Reference) Tracker {
	tr := New(clientgoscheme.Scheme, time.Hour)
	for i := range size {
		mustTrack(b, tr, ref(i), observer(fmt.Sprintf("observer-%d", i)))
	}
	return tr
}

func BenchmarkGetObservers(b *testing.B) {
	for _, scenario := range scenarios {
		for _, size := range sizes {
			b.Run(fmt.Sprintf("%s/%d", scenario.name, size), func(b *testing.B) {
				tr := filled(b, size, scenario.ref)
				b.ReportAllocs()
				var found []types.NamespacedName
				for b.Loop() {
					found, _ = tr.GetObservers(changed)
				}
				if len(found) == 0 {
					b.Fatal("found nobody")
				}
			})
		}
	}
}

// BenchmarkTrackReference renews a track among many, as every reconcile does.
func BenchmarkTrackReference(b *testing.B) {
	for _, scenario := range scenarios {
		const size = 10_000
		b.Run(fmt.Sprintf("%s/%d", scenario.name, size), func(b *testing.B) {
			tr := filled(b, size, scenario.ref)
			ref, obj := scenario.ref(0), observer("observer-0")
			b.ReportAllocs()
			for b.Loop() {
				if err := tr.TrackReference(ref, obj); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkGetObserversWhileTracking looks up from all processors while one
// goroutine renews tracks.
func BenchmarkGetObserversWhileTracking(b *testing.B) {
	const size = 10_000
	for _, scenario := range scenarios {
		b.Run(fmt.Sprintf("%s/%d", scenario.name, size), func(b *testing.B) {
			tr := filled(b, size, scenario.ref)
			ref, obj := scenario.ref(0), observer("observer-0")
			stop, stopped := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(stopped)
				for {
					select {
					case <-stop:
						return
					default:
						_ = tr.TrackReference(ref, obj)
					}
				}
			}()
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					_, _ = tr.GetObservers(changed)
				}
			})
			b.StopTimer()
			close(stop)
			<-stopped
		})
	}
}
