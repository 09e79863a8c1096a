// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// modelTrack is what the model remembers of a registration.
type modelTrack struct {
	ref      Reference
	observer string
	expires  time.Time
}

// model is the obvious tracker: it forgets nothing and looks at everything.
type model []modelTrack

func (m model) observersOf(namespace, name string, set labels.Set, now time.Time) []types.NamespacedName {
	found := map[string]bool{}
	for _, track := range m {
		if !now.Before(track.expires) {
			continue
		}
		if track.ref.Selector == nil {
			found[track.observer] = found[track.observer] || track.ref.Namespace == namespace && track.ref.Name == name
			continue
		}
		inNamespace := track.ref.Namespace == "" || track.ref.Namespace == namespace
		found[track.observer] = found[track.observer] || inNamespace && track.ref.Selector.Matches(set)
	}
	var names []string
	for i := range 6 {
		if name := fmt.Sprintf("o%d", i); found[name] {
			names = append(names, name)
		}
	}
	return observerNames(names...)
}

// TestAgainstModel makes random registrations, lookups and pauses, and compares
// every lookup to the model.
func TestAgainstModel(t *testing.T) {
	var (
		namespaces = []string{"n0", "n1", "n2"}
		names      = []string{"a", "b"}
		colors     = []string{"red", "blue"}
	)
	for seed := range uint64(20) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			pick := func(from []string) string { return from[random.IntN(len(from))] }
			clock := newClock()
			tr := newTracker(clientgoscheme.Scheme, time.Minute, clock.now)
			var m model

			for step := range 500 {
				switch random.IntN(5) {
				case 0, 1:
					ref := Reference{Kind: "ConfigMap", Namespace: pick(namespaces)}
					switch random.IntN(3) {
					case 0:
						ref.Name = pick(names)
					case 1:
						ref.Selector = labels.SelectorFromSet(labels.Set{"color": pick(colors)})
					case 2:
						ref.Namespace = ""
						ref.Selector = labels.SelectorFromSet(labels.Set{"color": pick(colors)})
					}
					name := fmt.Sprintf("o%d", random.IntN(6))
					mustTrack(t, tr, ref, observer(name))
					m = append(m, modelTrack{ref: ref, observer: name, expires: clock.time.Add(time.Minute)})
				case 2:
					clock.advance(time.Duration(random.IntN(20)) * time.Second)
				default:
					namespace, name := pick(namespaces), pick(names)
					set := labels.Set{"color": pick(colors)}
					got := mustGetObservers(t, tr, &corev1.ConfigMap{ObjectMeta: metaOf(namespace, name, set)})
					want := m.observersOf(namespace, name, set, clock.time)
					if diff := cmp.Diff(want, got); diff != "" {
						t.Fatalf("step %d: observers of %s/%s %v (-want +got):\n%s", step, namespace, name, set, diff)
					}
				}
			}
		})
	}
}
