// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Tracker remembers which objects watch which others. It is safe for concurrent
// use.
type Tracker interface {
	// TrackReference notes that obj, the observer, watches whatever ref refers to.
	// The track lasts for the lease of the tracker; tracking the same again renews
	// it. Only namespace and name of the observer are kept. An invalid reference
	// is an error that lists everything that is wrong with it.
	TrackReference(ref Reference, obj client.Object) error

	// TrackObject notes that obj, the observer, watches the one object with the
	// kind, namespace and name of ref. It is TrackReference otherwise. The kind is
	// the one set on ref, or the one its Go type has in the scheme; it is an error
	// when there is neither.
	TrackObject(ref client.Object, obj client.Object) error

	// GetObservers returns the observers that watch obj, by name or by selector,
	// each once and in no particular order. Without observers the result is empty,
	// not nil. It is an error when the kind of obj cannot be determined, see
	// TrackObject.
	GetObservers(obj client.Object) ([]types.NamespacedName, error)
}

// New returns an empty [Tracker]. The scheme resolves the kind of typed objects.
// A track lapses when it is not renewed within the lease; with a lease of zero
// it lapses at once.
func New(scheme *runtime.Scheme, lease time.Duration) Tracker {
	return newTracker(scheme, lease, time.Now)
}

func newTracker(scheme *runtime.Scheme, lease time.Duration, now func() time.Time) *tracker {
	return &tracker{
		scheme:    scheme,
		lease:     lease,
		now:       now,
		exact:     map[exactKey]*target{},
		selectors: map[bucketKey]map[selectorKey]*target{},
		tracks:    map[trackKey]*track{},
	}
}

type tracker struct {
	scheme *runtime.Scheme
	lease  time.Duration
	now    func() time.Time

	// mu is held for writing while tracks are added and removed; lookups share it.
	mu sync.RWMutex
	// exact holds what is watched by name.
	exact map[exactKey]*target
	// selectors holds what is watched by selector. A lookup reads two buckets,
	// that of the namespace of the object and that of any namespace, and evaluates
	// each distinct selector in them once, however many observers share it.
	selectors map[bucketKey]map[selectorKey]*target
	// tracks finds the track to renew.
	tracks map[trackKey]*track
	// byExpiry orders the tracks, so that removing those that lapsed never looks
	// at any other.
	byExpiry expiryList
}

// exactKey identifies an object watched by name.
type exactKey struct {
	schema.GroupKind
	types.NamespacedName
}

// bucketKey groups selectors by the objects that can match them. An empty
// namespace holds those for any namespace, and for cluster-scoped kinds.
type bucketKey struct {
	schema.GroupKind
	namespace string
}

// selectorKey identifies equal selectors of a bucket, as the selectors
// themselves are not comparable.
type selectorKey struct {
	text string
	// empty tells labels.Everything from labels.Nothing, both are "" as text.
	empty bool
}

func (t *tracker) TrackObject(ref client.Object, obj client.Object) error {
	if ref == nil {
		return errors.New("can't track a nil object")
	}
	gk, err := groupKindOf(ref, t.scheme)
	if err != nil {
		return err
	}
	return t.TrackReference(Reference{
		APIGroup:  gk.Group,
		Kind:      gk.Kind,
		Namespace: ref.GetNamespace(),
		Name:      ref.GetName(),
	}, obj)
}

func (t *tracker) TrackReference(ref Reference, obj client.Object) error {
	if err := ref.validate(); err != nil {
		return err
	}
	if obj == nil {
		return errors.New("can't track for a nil observer")
	}
	observer := client.ObjectKeyFromObject(obj)
	var selector selectorKey
	if ref.Selector != nil {
		// rendering a selector is not cheap, lookups need not wait for it
		selector = selectorKey{text: ref.Selector.String(), empty: ref.Selector.Empty()}
	}

	t.mu.Lock()
	defer t.mu.Unlock()

	now := t.now()
	// Every registration pays for what lapsed since the last one. This bounds the
	// memory by the tracks made within one lease, also for references that no
	// event ever looks up and for observers that are gone.
	t.sweep(now)

	on := t.targetFor(ref, selector)
	key := trackKey{target: on, observer: observer}
	tr, ok := t.tracks[key]
	if ok {
		t.byExpiry.remove(tr)
	} else {
		tr = &track{trackKey: key}
		t.tracks[key] = tr
		on.add(tr)
	}
	tr.expires = now.Add(t.lease)
	t.byExpiry.pushBack(tr)
	return nil
}

func (t *tracker) GetObservers(obj client.Object) ([]types.NamespacedName, error) {
	if obj == nil {
		return nil, errors.New("can't look up the observers of a nil object")
	}
	gk, err := groupKindOf(obj, t.scheme)
	if err != nil {
		return nil, err
	}
	name := client.ObjectKeyFromObject(obj)
	set := labels.Set(obj.GetLabels())
	found := newObservers(t.now())

	t.mu.RLock()
	defer t.mu.RUnlock()

	if on, ok := t.exact[exactKey{GroupKind: gk, NamespacedName: name}]; ok {
		found.add(on)
	}
	t.addMatching(found, bucketKey{GroupKind: gk}, set)
	if name.Namespace != "" {
		t.addMatching(found, bucketKey{GroupKind: gk, namespace: name.Namespace}, set)
	}
	return found.names, nil
}

// addMatching adds the observers of every selector in the bucket that matches
// the labels.
func (t *tracker) addMatching(found *observers, bucket bucketKey, set labels.Set) {
	for _, on := range t.selectors[bucket] {
		if on.selector.Matches(set) {
			found.add(on)
		}
	}
}

// targetFor returns the target of a reference; it is created when the reference
// is the first to it.
func (t *tracker) targetFor(ref Reference, selector selectorKey) *target {
	if ref.Selector == nil {
		key := exactKey{
			GroupKind:      ref.groupKind(),
			NamespacedName: types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name},
		}
		on, ok := t.exact[key]
		if !ok {
			on = &target{drop: func() { delete(t.exact, key) }}
			t.exact[key] = on
		}
		return on
	}

	key := bucketKey{GroupKind: ref.groupKind(), namespace: ref.Namespace}
	bucket, ok := t.selectors[key]
	if !ok {
		bucket = map[selectorKey]*target{}
		t.selectors[key] = bucket
	}
	on, ok := bucket[selector]
	if !ok {
		on = &target{selector: ref.Selector, drop: func() {
			delete(bucket, selector)
			if len(bucket) == 0 {
				delete(t.selectors, key)
			}
		}}
		bucket[selector] = on
	}
	return on
}

// sweep removes the tracks that lapsed, and the targets that are left without
// any.
func (t *tracker) sweep(now time.Time) {
	for tr := t.byExpiry.front; tr != nil && tr.expired(now); tr = t.byExpiry.front {
		t.byExpiry.remove(tr)
		delete(t.tracks, tr.trackKey)
		tr.target.remove(tr)
		if len(tr.target.tracks) == 0 {
			tr.target.drop()
		}
	}
}
