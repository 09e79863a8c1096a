// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

var sizes = []int{100, 10_000, 100_000}

func selecting(namespace string, set labels.Set) Reference {
	return Reference{Kind: "ConfigMap", Namespace: namespace, Selector: labels.SelectorFromSet(set)}
}

// scenarios are trackers that differ in what the observers watch. A lookup of changed finds one observer, except for
// "shared", which finds all, and "both", which finds two.
var scenarios = []struct {
	name string
	refs func(i int) []Reference
}{
	{"exact", func(i int) []Reference {
		return []Reference{{Kind: "ConfigMap", Namespace: "ns", Name: appOf(i)}}
	}},
	{"selectors", func(i int) []Reference {
		return []Reference{selecting("ns", labels.Set{"app": appOf(i)})}
	}},
	{"selectors-with-common-label", func(i int) []Reference {
		return []Reference{selecting("ns", labels.Set{"tier": "web", "app": appOf(i)})}
	}},
	{"selectors-in-100-namespaces", func(i int) []Reference {
		return []Reference{selecting(namespaceOf(i), labels.Set{"app": appOf(i)})}
	}},
	{"both", func(i int) []Reference {
		return []Reference{{Kind: "ConfigMap", Namespace: "ns", Name: appOf(i)}, selecting("ns", labels.Set{"app": appOf(i)})}
	}},
	{"shared", func(int) []Reference {
		return []Reference{{Kind: "ConfigMap", Namespace: "ns", Name: "app-0"}}
	}},
}

func appOf(i int) string { return fmt.Sprintf("app-%d", i) }

func namespaceOf(i int) string {
	if i%100 == 0 {
		return "ns"
	}
	return fmt.Sprintf("ns-%d", i%100)
}

var changed = eventFor(scenarios[0].refs, 0)

// eventFor returns an object that matches the references of the given number.
func eventFor(refs func(int) []Reference, i int) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metaOf(refs(i)[0].Namespace, appOf(i), map[string]string{"app": appOf(i), "tier": "web"}),
	}
}

// filled returns a tracker with the given number of references of each form, each with its own observer.
func filled(b *testing.B, size int, refs func(int) []Reference) Tracker {
	tr := New(clientgoscheme.Scheme, time.Hour)
	for i := range size {
		for form, ref := range refs(i) {
			mustTrack(b, tr, ref, observerNamed(fmt.Sprintf("observer-%d-%d", i, form)))
		}
	}
	runtime.GC() // collect earlier garbage before the benchmark starts
	return tr
}

func BenchmarkGetObservers(b *testing.B) {
	for _, scenario := range scenarios {
		for _, size := range sizes {
			b.Run(fmt.Sprintf("%s/%d", scenario.name, size), func(b *testing.B) {
				tr := filled(b, size, scenario.refs)
				b.ReportAllocs()
				var found []types.NamespacedName
				for b.Loop() {
					found, _ = tr.GetObservers(changed)
				}
				b.ReportMetric(float64(len(found)), "found")
				if len(found) == 0 {
					b.Fatal("found no observers")
				}
			})
		}
	}
}

// BenchmarkFlatness compares a lookup among 100,000 references of each form to a lookup among 100, in turns, and
// reports the ratio of the fastest. It looks up a thousand objects one after the other, or all in random order. Random
// order mostly measures cache misses of the processor.
func BenchmarkFlatness(b *testing.B) {
	const few, many, objects = 100, 100_000, 1000
	for _, scenario := range scenarios[:len(scenarios)-1] { // "shared" returns more in a larger tracker
		for _, among := range []int{objects, many} {
			b.Run(fmt.Sprintf("%s/%d-objects", scenario.name, among), func(b *testing.B) {
				small, large := filled(b, few, scenario.refs), filled(b, many, scenario.refs)
				order := rand.New(rand.NewPCG(0, 0)).Perm(many)[:among]
				eventsFor := func(size int) []*corev1.ConfigMap {
					events := make([]*corev1.ConfigMap, among)
					for i, app := range order {
						events[i] = eventFor(scenario.refs, app%size)
					}
					return events
				}
				lookUp := func(tr Tracker, events []*corev1.ConfigMap) time.Duration {
					start := time.Now()
					for _, event := range events {
						if _, err := tr.GetObservers(event); err != nil {
							b.Fatal(err)
						}
					}
					return time.Since(start)
				}
				eventsOfFew, eventsOfMany := eventsFor(few), eventsFor(many)
				inSmall, inLarge := lookUp(small, eventsOfFew), lookUp(large, eventsOfMany)
				for b.Loop() {
					inSmall = min(inSmall, lookUp(small, eventsOfFew))
					inLarge = min(inLarge, lookUp(large, eventsOfMany))
				}
				b.ReportMetric(float64(inSmall)/float64(among), "ns/lookup-of-100")
				b.ReportMetric(float64(inLarge)/float64(among), "ns/lookup-of-100000")
				b.ReportMetric(float64(inLarge)/float64(inSmall), "x")
				b.ReportMetric(0, "ns/op") // the time of a round of all lookups has no meaning
			})
		}
	}
}

// BenchmarkTrackReference renews tracks among many, as every reconcile does.
func BenchmarkTrackReference(b *testing.B) {
	for _, scenario := range scenarios {
		const size = 10_000
		b.Run(fmt.Sprintf("%s/%d", scenario.name, size), func(b *testing.B) {
			tr := filled(b, size, scenario.refs)
			ref, obj := scenario.refs(0)[0], observerNamed("observer-0-0")
			b.ReportAllocs()
			for b.Loop() {
				if err := tr.TrackReference(ref, obj); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkComeAndGo tracks for a new observer among many, and forgets it.
func BenchmarkComeAndGo(b *testing.B) {
	for _, scenario := range scenarios {
		const size = 10_000
		b.Run(fmt.Sprintf("%s/%d", scenario.name, size), func(b *testing.B) {
			tr := filled(b, size, scenario.refs)
			refs, obj := scenario.refs(size), observerNamed("new")
			b.ReportAllocs()
			for b.Loop() {
				for _, ref := range refs {
					if err := tr.TrackReference(ref, obj); err != nil {
						b.Fatal(err)
					}
				}
				tr.(Forgetter).Forget(obj)
			}
		})
	}
}
