// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

func TestConcurrentUse(t *testing.T) {
	const workers, rounds = 6, 200
	// leases run out all the time while the test runs
	tr := New(clientgoscheme.Scheme, 50*time.Microsecond)

	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range rounds {
				name := fmt.Sprintf("o%d", (w+i)%4)
				if err := tr.TrackReference(byName, observer(name)); err != nil {
					t.Error(err)
				}
				if err := tr.TrackReference(bySelector, observer(name)); err != nil {
					t.Error(err)
				}
				if err := tr.TrackObject(eventObject, observer(name)); err != nil {
					t.Error(err)
				}
			}
		})
		wg.Go(func() {
			for range rounds {
				got, err := tr.GetObservers(eventObject)
				if err != nil {
					t.Error(err)
				}
				seen := map[types.NamespacedName]bool{}
				for _, name := range got {
					if seen[name] {
						t.Errorf("%s is in the result twice", name)
					}
					seen[name] = true
				}
			}
		})
	}
	wg.Wait()
}

// meetingSelector matches when as many lookups as expected evaluate it at the
// same time.
type meetingSelector struct {
	labels.Selector
	meet func()
}

func (s meetingSelector) Matches(labels.Labels) bool {
	s.meet()
	return true
}

// A lookup evaluates selectors, which may take long; others must not wait for it.
func TestLookupsDoNotExcludeEachOther(t *testing.T) {
	const lookups = 3
	var arrived sync.WaitGroup
	arrived.Add(lookups)
	selector := meetingSelector{
		Selector: labels.Everything(),
		meet: func() {
			arrived.Done()
			arrived.Wait() // forever, if lookups take turns
		},
	}

	tr := New(clientgoscheme.Scheme, time.Hour)
	mustTrack(t, tr, Reference{Kind: "ConfigMap", Namespace: "ns", Selector: selector}, observer("a"))

	results := make(chan []types.NamespacedName, lookups)
	for range lookups {
		go func() {
			got, err := tr.GetObservers(&corev1.ConfigMap{ObjectMeta: metaOf("ns", "a", nil)})
			if err != nil {
				t.Error(err)
			}
			results <- got
		}()
	}
	deadline := time.After(30 * time.Second)
	for range lookups {
		select {
		case got := <-results:
			if diff := cmp.Diff(observerNames("a"), got); diff != "" {
				t.Errorf("observers (-want +got):\n%s", diff)
			}
		case <-deadline:
			t.Fatal("lookups wait for each other")
		}
	}
}
