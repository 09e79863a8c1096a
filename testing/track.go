// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/tracker"
)

// TrackRequest is a reference that a resource tracks, given or expected. Create it with [NewTrackRequest] or
// [CreateTrackRequest] for a single object, and as a literal for a selector.
type TrackRequest struct {
	// Tracker is the name of the resource that tracks.
	Tracker types.NamespacedName
	// Tracked is the tracked object. It is ignored if TrackedReference is set.
	//
	// Deprecated: use TrackedReference.
	Tracked tracker.Key //nolint:staticcheck // users' tests have it
	// TrackedReference is the tracked reference: to an object by name, or to objects by label.
	TrackedReference tracker.Reference
}

// NewTrackRequest returns the request that an observer tracks an object. It panics if the kind of the tracked object is
// neither set on it nor in the scheme.
func NewTrackRequest(tracked, observer client.Object, scheme *runtime.Scheme) TrackRequest {
	ref, err := referenceTo(tracked, scheme)
	if err != nil {
		panic(fmt.Errorf("track request for %T: %w", tracked, err))
	}
	by, err := unwrap(observer)
	if err != nil {
		panic(fmt.Errorf("track request by %T: %w", observer, err))
	}
	return CreateTrackRequest(ref.GroupVersionKind().Group, ref.Kind, ref.Namespace, ref.Name).
		By(by.GetNamespace(), by.GetName())
}

// trackBy returns the request of an observer.
type trackBy func(trackingObjNamespace, trackingObjName string) TrackRequest

// By returns the request of this observer.
func (t trackBy) By(trackingObjNamespace, trackingObjName string) TrackRequest {
	return t(trackingObjNamespace, trackingObjName)
}

// CreateTrackRequest begins a request to track an object. By sets the observer:
//
//	CreateTrackRequest("", "ConfigMap", "web", "theme").By("web", "blog")
func CreateTrackRequest(trackedObjGroup, trackedObjKind, trackedObjNamespace, trackedObjName string) trackBy {
	return func(trackingObjNamespace, trackingObjName string) TrackRequest {
		return TrackRequest{
			Tracker: types.NamespacedName{Namespace: trackingObjNamespace, Name: trackingObjName},
			TrackedReference: tracker.Reference{
				APIGroup:  trackedObjGroup,
				Kind:      trackedObjKind,
				Namespace: trackedObjNamespace,
				Name:      trackedObjName,
			},
		}
	}
}

// normalized returns the request with a reference instead of a key.
func (r TrackRequest) normalized() TrackRequest {
	if r.TrackedReference == (tracker.Reference{}) {
		r.TrackedReference = tracker.Reference{
			APIGroup:  r.Tracked.GroupKind.Group,
			Kind:      r.Tracked.GroupKind.Kind,
			Namespace: r.Tracked.NamespacedName.Namespace,
			Name:      r.Tracked.NamespacedName.Name,
		}
	}
	r.Tracked = tracker.Key{} //nolint:staticcheck // see the field
	return r
}

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
