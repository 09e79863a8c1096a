// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/tracker"
)

// trackLease is longer than any test runs.
const trackLease = 24 * time.Hour

// trackRecorder is a tracker that records all requests, valid or not. It is safe for concurrent use.
type trackRecorder struct {
	tracker.Tracker
	scheme *runtime.Scheme

	mu       sync.Mutex
	requests []TrackRequest
}

func newTrackRecorder(scheme *runtime.Scheme) *trackRecorder {
	return &trackRecorder{Tracker: tracker.New(scheme, trackLease), scheme: scheme}
}

// give tracks without recording the request.
func (t *trackRecorder) give(request TrackRequest) error {
	request = request.normalized()
	return t.Tracker.TrackReference(request.TrackedReference, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: request.Tracker.Namespace, Name: request.Tracker.Name,
	}})
}

func (t *trackRecorder) TrackReference(ref tracker.Reference, obj client.Object) error {
	if !nilcheck.IsNil(obj) {
		t.mu.Lock()
		t.requests = append(t.requests, TrackRequest{Tracker: client.ObjectKeyFromObject(obj), TrackedReference: ref})
		t.mu.Unlock()
	}
	return t.Tracker.TrackReference(ref, obj)
}

func (t *trackRecorder) TrackObject(ref, obj client.Object) error {
	tracked, err := referenceTo(ref, t.scheme)
	if err != nil {
		// This is the error of the real tracker.
		return t.Tracker.TrackObject(ref, obj)
	}
	return t.TrackReference(tracker.Reference{
		APIGroup:  tracked.GroupVersionKind().Group,
		Kind:      tracked.Kind,
		Namespace: tracked.Namespace,
		Name:      tracked.Name,
	}, obj)
}

func (t *trackRecorder) observed() []TrackRequest {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.requests)
}
