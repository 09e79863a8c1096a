// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/tracker"
)

func TestNewTrackRequest(t *testing.T) {
	want := TrackRequest{
		Tracker: types.NamespacedName{Namespace: "web", Name: "theme"},
		TrackedReference: tracker.Reference{
			APIGroup: "fixture.trueup.dev", Kind: "Resource", Namespace: "web", Name: "blog",
		},
	}
	for name, got := range map[string]TrackRequest{
		"Typed": NewTrackRequest(theResource(), theMap(), assertScheme),
		"Duck":  NewTrackRequest(fixture.NewDuck("web", "blog"), theMap(), assertScheme),
		"Dies":  NewTrackRequest(die{theResource()}, die{theMap()}, assertScheme),
		"Names": CreateTrackRequest("fixture.trueup.dev", "Resource", "web", "blog").By("web", "theme"),
	} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if got, want := fmt.Sprintf("%v", want), "{web/theme { /} {fixture.trueup.dev Resource web blog <nil>}}"; got != want {
		t.Errorf("got text %s, want %s", got, want)
	}
}

// What is tracked is remembered in the order of the calls, also what cannot be tracked.
func TestTrackRecorder(t *testing.T) {
	c := newAssertConfig("")
	config := c.Config()
	everything := tracker.Reference{Kind: "ConfigMap", Namespace: "web", Selector: labels.Everything()}
	invalid := tracker.Reference{Kind: "ConfigMap", Namespace: "web", Name: "a:b"}
	if err := config.Tracker.TrackReference(everything, theResource()); err != nil {
		t.Error(err)
	}
	if err := config.Tracker.TrackObject(fixture.NewDuck("web", "duck"), theResource()); err != nil {
		t.Error(err)
	}
	if err := config.Tracker.TrackReference(invalid, theResource()); err == nil {
		t.Error("got no error for an invalid reference")
	}
	for name, call := range map[string]error{
		"no observer":  config.Tracker.TrackReference(everything, nil),
		"no object":    config.Tracker.TrackObject(nil, theResource()),
		"unknown kind": config.Tracker.TrackObject(&fixture.Duck{}, theResource()),
		"metadata": config.Tracker.TrackObject(
			&metav1.PartialObjectMetadata{ObjectMeta: theMap().ObjectMeta}, theResource(),
		),
	} {
		if call == nil {
			t.Errorf("%s: got no error", name)
		}
	}
	observer := client.ObjectKeyFromObject(theResource())
	c.ExpectTracks = []TrackRequest{
		{Tracker: observer, TrackedReference: everything},
		CreateTrackRequest("fixture.trueup.dev", "Resource", "web", "duck").By("web", "blog"),
		{Tracker: observer, TrackedReference: invalid},
	}
	c.AssertExpectations(t)

	observers, err := config.Tracker.GetObservers(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "any"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]types.NamespacedName{observer}, observers); diff != "" {
		t.Errorf("observers (-want +got):\n%s", diff)
	}
}
