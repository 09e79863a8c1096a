// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/memapi"
)

func TestStaleMoments(t *testing.T) {
	at := func(generation int64, deleting bool) client.Object {
		obj := &corev1.Secret{}
		obj.Generation = generation
		if deleting {
			obj.DeletionTimestamp = new(metav1.Now())
		}
		return obj
	}
	event := func(name string, kind watch.EventType, before, after client.Object) memapi.Event {
		return memapi.Event{Type: kind, Key: client.ObjectKey{Name: name}, Old: before, Object: after}
	}
	added := event("a", watch.Added, nil, at(1, false))
	touched := event("a", watch.Modified, at(1, false), at(1, false))
	changed := event("a", watch.Modified, at(1, false), at(2, false))
	ending := event("a", watch.Modified, at(1, false), at(1, true))
	deleted := event("a", watch.Deleted, at(1, true), at(1, true))
	other := event("b", watch.Added, nil, at(1, false))
	for _, tt := range []struct {
		name    string
		events  []memapi.Event
		primary bool
		want    []int
	}{
		{"nothing", nil, true, nil},
		{"the last three", []memapi.Event{touched, touched, touched, touched, touched}, true, []int{1, 2, 3}},
		{"a generation", []memapi.Event{touched, changed, touched, touched, touched}, true, []int{1, 2, 3, 4}},
		{"of another kind", []memapi.Event{touched, changed, touched, touched, touched}, false, []int{1, 2, 3}},
		{
			"a deletion",
			[]memapi.Event{added, ending, touched, deleted, touched, touched, touched},
			true,
			[]int{1, 2, 3, 4, 6, 7},
		},
		{
			"three each",
			[]memapi.Event{other, other, other, other, touched, touched, touched},
			true,
			[]int{1, 2, 3, 4, 5, 6},
		},
		{
			"an earlier life although many others were created",
			[]memapi.Event{added, deleted, added, other, other, other, touched, touched, touched},
			true,
			[]int{1, 2, 3, 4, 5, 6, 8},
		},
	} {
		if diff := cmp.Diff(tt.want, staleMoments(tt.events, tt.primary)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}
