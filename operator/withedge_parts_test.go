// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"runtime"
	"testing"
	"time"
	"weak"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"trueup.dev/internal/testkit/await"
)

// A handler with a reduced PreviousState does not keep the objects of events.
func TestWithEdge_KeepsPartsOnly(t *testing.T) {
	for name, tc := range map[string]struct {
		previous PreviousState
		data     bool
		labels   bool
	}{
		"full":     {previous: PreviousFull, data: true, labels: true},
		"metadata": {previous: PreviousMetadata, labels: true},
		"none":     {previous: PreviousNone},
	} {
		t.Run(name, func(t *testing.T) {
			edge := WatcherReconciler[*corev1.ConfigMap](nil)
			edge.PreviousState = tc.previous
			edge.init()
			recorder := edge.ledgerPredicate(&corev1.ConfigMap{})
			cm := &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "1", ResourceVersion: "1", Labels: map[string]string{"a": "b"}},
				Data:       map[string]string{"a": "b"},
			}
			check := func() {
				t.Helper()
				latest := edge.ledger.records[client.ObjectKeyFromObject(cm)].latest.(*corev1.ConfigMap)
				if latest.Name != "a" || latest.ResourceVersion != cm.ResourceVersion || (latest.Data != nil) != tc.data ||
					(latest.Labels != nil) != tc.labels {
					t.Errorf("kept %v", latest)
				}
			}
			recorder.Create(event.CreateEvent{Object: cm})
			check()
			before := cm
			cm = cm.DeepCopy()
			cm.ResourceVersion = "2"
			recorder.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: cm})
			check()
		})
	}
}

// With a reduced PreviousState, objects of events do not stay in memory.
func TestWithEdge_KeepsNoObjectsOfEvents(t *testing.T) {
	for name, tc := range map[string]struct {
		previous PreviousState
		held     int
	}{"full": {PreviousFull, 50}, "metadata": {PreviousMetadata, 0}, "none": {PreviousNone, 0}} {
		t.Run(name, func(t *testing.T) {
			edge := WatcherReconciler[*corev1.ConfigMap](nil)
			edge.PreviousState = tc.previous
			edge.init()
			recorder := edge.ledgerPredicate(&corev1.ConfigMap{})
			received := []weak.Pointer[corev1.ConfigMap]{}
			object := func(i, version int) *corev1.ConfigMap {
				cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
					Name: fmt.Sprint("n", i), UID: types.UID(fmt.Sprint(i)), ResourceVersion: fmt.Sprint(version),
				}}
				received = append(received, weak.Make(cm))
				return cm
			}
			for i := range 50 {
				recorder.Create(event.CreateEvent{Object: object(i, 1)})
				recorder.Update(event.UpdateEvent{ObjectOld: object(i, 1), ObjectNew: object(i, 2)})
			}
			await.Nil(t, 10*time.Second, func() error {
				runtime.GC()
				held := 0
				for _, pointer := range received {
					if pointer.Value() != nil {
						held++
					}
				}
				if held != tc.held {
					return fmt.Errorf("%d objects are in memory, want %d", held, tc.held)
				}
				return nil
			})
			runtime.KeepAlive(edge)
		})
	}
}
