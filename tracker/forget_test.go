// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

func TestForget(t *testing.T) {
	anywhere := Reference{Kind: "ConfigMap", Selector: labels.Everything()}
	tests := map[string]struct {
		reason string
		forget types.NamespacedName
		want   []types.NamespacedName
	}{
		"One": {
			reason: "all that it watches is dropped, others are not touched",
			forget: observerNames("a")[0],
			want:   observerNames("b"),
		},
		"Unknown": {
			reason: "it watches nothing, so there is nothing to drop",
			forget: observerNames("c")[0],
			want:   observerNames("a", "b"),
		},
		"OtherNamespace": {
			reason: "the namespace is part of the name",
			forget: types.NamespacedName{Namespace: "other", Name: "a"},
			want:   observerNames("a", "b"),
		},
		"Watched": {
			reason: "what is watched by that name is somebody else",
			forget: types.NamespacedName{Namespace: byName.Namespace, Name: byName.Name},
			want:   observerNames("a", "b"),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tr := New(clientgoscheme.Scheme, time.Hour)
			for _, ref := range []Reference{byName, bySelector, anywhere} {
				mustTrack(t, tr, ref, observerNamed("a"))
				mustTrack(t, tr, ref, observerNamed("b"))
			}
			tr.(Forgetter).Forget(tt.forget)
			if diff := cmp.Diff(tt.want, mustGetObservers(t, tr, eventObject)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
			checkConsistent(t, tr.(*tracker))
		})
	}
}

func TestForgottenMayTrackAgain(t *testing.T) {
	tr := New(clientgoscheme.Scheme, time.Hour)
	for range 3 {
		mustTrack(t, tr, byName, observerNamed("a"))
		if diff := cmp.Diff(observerNames("a"), mustGetObservers(t, tr, eventObject)); diff != "" {
			t.Errorf("tracked (-want +got):\n%s", diff)
		}
		tr.(Forgetter).Forget(observerNames("a")[0])
		if diff := cmp.Diff(observerNames(), mustGetObservers(t, tr, eventObject)); diff != "" {
			t.Errorf("forgotten (-want +got):\n%s", diff)
		}
	}
}
