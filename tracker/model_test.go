// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	ops "k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// modelTrack is what the model remembers of a registration.
type modelTrack struct {
	ref      Reference
	observer modelObserver
	expires  time.Time
}

type modelObserver struct{ kind, name string }

func (m modelTrack) watches(obj client.Object, kind string) bool {
	if m.ref.Kind != kind {
		return false
	}
	if m.ref.Selector == nil {
		return m.ref.Namespace == obj.GetNamespace() && m.ref.Name == obj.GetName()
	}
	inNamespace := m.ref.Namespace == "" || m.ref.Namespace == obj.GetNamespace()
	return inNamespace && m.ref.Selector.Matches(labels.Set(obj.GetLabels()))
}

// model is the simplest tracker: it keeps everything and scans everything.
type model struct {
	tracks []modelTrack
	held   map[modelObserver]bool
}

// drop removes the tracks that are over. An observer without tracks is not held.
func (m *model) drop(over func(modelTrack) bool) {
	m.tracks = slices.DeleteFunc(m.tracks, over)
	for observer := range m.held {
		if !slices.ContainsFunc(m.tracks, func(track modelTrack) bool { return track.observer == observer }) {
			delete(m.held, observer)
		}
	}
}

// add adds or renews a track.
func (m *model) add(added modelTrack) {
	by := string(appendReference(nil, added.ref))
	m.tracks = slices.DeleteFunc(m.tracks, func(track modelTrack) bool {
		return track.observer == added.observer && string(appendReference(nil, track.ref)) == by
	})
	m.tracks = append(m.tracks, added)
}

func appendReference(b []byte, ref Reference) []byte {
	b = fmt.Appendf(b, "%s|%s|%s|%s|", ref.APIGroup, ref.Kind, ref.Namespace, ref.Name)
	if ref.Selector != nil {
		b = appendIdentity(b, unwrap(ref.Selector))
	}
	return b
}

func (m *model) hold(observer modelObserver, since, now time.Time, lease time.Duration) {
	held := m.held[observer]
	m.drop(func(track modelTrack) bool {
		return track.observer == observer && !now.Before(track.expires) &&
			(!held || track.expires.Add(-lease).Before(since))
	})
	if slices.ContainsFunc(m.tracks, func(track modelTrack) bool { return track.observer == observer }) {
		m.held[observer] = true
	}
}

func (m *model) observersOf(obj client.Object, kind string, now time.Time) []types.NamespacedName {
	var names []string
	for _, track := range m.tracks {
		if track.watches(obj, kind) && (m.held[track.observer] || now.Before(track.expires)) {
			names = append(names, track.observer.name)
		}
	}
	slices.Sort(names)
	return observerNames(slices.Compact(names)...)
}

// chooser generates references and objects from few names, so that they match often.
type chooser struct{ *rand.Rand }

func (c chooser) of(from ...string) string { return from[c.IntN(len(from))] }

func (c chooser) kind() string      { return c.of("ConfigMap", "ConfigMap", "Secret") }
func (c chooser) namespace() string { return c.of("", "n0", "n1", "n2") }
func (c chooser) name() string      { return c.of("a", "b", "c") }
func (c chooser) key() string       { return c.of("app", "color", "size") }
func (c chooser) value() string     { return c.of("", "blue", "red", "1", "2", "3") }

func (c chooser) observer() modelObserver {
	return modelObserver{kind: c.kind(), name: c.of("o0", "o1", "o2", "o3", "o4", "o5", "o6", "o7")}
}

// holding returns the observer in any of the Go types that an object of its kind may have.
func (c chooser) holding(observer modelObserver) client.Object {
	if c.IntN(2) == 0 {
		return metadataNamed(observer.name, "v1", observer.kind)
	}
	if observer.kind == "Secret" {
		return &corev1.Secret{ObjectMeta: metaOf("observers", observer.name, nil)}
	}
	return observerNamed(observer.name)
}

func (c chooser) labels() labels.Set {
	set := labels.Set{}
	for range c.IntN(4) {
		set[c.key()] = c.value()
	}
	return set
}

func (c chooser) object(kind string) client.Object {
	meta := metaOf(c.namespace(), c.name(), c.labels())
	if kind == "Secret" {
		return &corev1.Secret{ObjectMeta: meta}
	}
	return &corev1.ConfigMap{ObjectMeta: meta}
}

func (c chooser) requirement() labels.Requirement {
	operators := []ops.Operator{
		ops.Equals, ops.Equals, ops.DoubleEquals, ops.In, ops.In, ops.NotEquals, ops.NotIn,
		ops.Exists, ops.DoesNotExist, ops.GreaterThan, ops.LessThan,
	}
	operator := operators[c.IntN(len(operators))]
	var values []string
	switch operator {
	case ops.In, ops.NotIn:
		for range 1 + c.IntN(3) {
			values = append(values, c.value())
		}
	case ops.GreaterThan, ops.LessThan:
		values = []string{c.of("1", "2")}
	case ops.Equals, ops.DoubleEquals, ops.NotEquals:
		values = []string{c.value()}
	}
	requirement, err := labels.NewRequirement(c.key(), operator, values)
	if err != nil {
		panic(err)
	}
	return *requirement
}

func (c chooser) selector() labels.Selector {
	switch c.IntN(20) {
	case 0:
		return labels.Nothing()
	case 1:
		return whimsical{labels.Everything()}
	case 2:
		return labels.SelectorFromSet(c.labels())
	}
	selector := labels.NewSelector()
	for range c.IntN(4) {
		selector = selector.Add(c.requirement())
	}
	if c.IntN(4) == 0 {
		return client.MatchingLabelsSelector{Selector: selector}
	}
	return selector
}

func (c chooser) reference() Reference {
	ref := Reference{Kind: c.kind(), Namespace: c.namespace()}
	if c.IntN(3) == 0 {
		ref.Name = c.name()
	} else {
		ref.Selector = c.selector()
	}
	return ref
}

// FuzzAgainstModel tracks, looks up, waits, holds and forgets at random, and compares every lookup to the model.
func FuzzAgainstModel(f *testing.F) {
	seeds := uint64(200)
	if testing.Short() {
		seeds = 80
	}
	for seed := range seeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		synctest.Test(t, func(t *testing.T) {
			const lease = time.Minute
			choose := chooser{rand.New(rand.NewPCG(seed, 0))}
			tr := newTracker(clientgoscheme.Scheme, lease)
			m := model{held: map[modelObserver]bool{}}

			for step := range 400 {
				switch choose.IntN(14) {
				case 0, 1, 2, 3:
					ref, observer := choose.reference(), choose.observer()
					mustTrack(t, tr, ref, choose.holding(observer))
					m.add(modelTrack{ref: ref, observer: observer, expires: time.Now().Add(lease)})
				case 4, 5:
					if len(m.tracks) != 0 { // most registrations renew a track
						again := m.tracks[choose.IntN(len(m.tracks))]
						mustTrack(t, tr, again.ref, choose.holding(again.observer))
						again.expires = time.Now().Add(lease)
						m.add(again)
					}
				case 6:
					time.Sleep(time.Duration(choose.IntN(20)) * time.Second)
				case 7:
					observer := choose.observer()
					tr.Forget(choose.holding(observer))
					m.drop(func(track modelTrack) bool { return track.observer == observer })
				case 8:
					observer, since := choose.observer(), time.Time{}
					if choose.IntN(2) == 0 {
						since = time.Now().Add(-time.Duration(choose.IntN(100)) * time.Second)
					}
					tr.Hold(choose.holding(observer), since)
					m.hold(observer, since, time.Now(), lease)
				default:
					kind := choose.kind()
					obj := choose.object(kind)
					want := m.observersOf(obj, kind, time.Now())
					if diff := cmp.Diff(want, mustGetObservers(t, tr, obj)); diff != "" {
						t.Fatalf("step %d: observers of %s %s/%s %v (-want +got):\n%s",
							step, kind, obj.GetNamespace(), obj.GetName(), obj.GetLabels(), diff)
					}
				}
				if step%20 == 0 {
					checkConsistent(t, tr)
				}
			}

			time.Sleep(lease + lease/ticksPerLease + 2) // the rest of the last tick
			for observer := range m.held {
				tr.Hold(choose.holding(observer), time.Now())
			}
			for i := 0; len(tr.tracks.entries) != 0; i++ {
				if i > 400/sweepSize {
					t.Fatalf("after all tracks expired, got: %+v", sizeOf(tr))
				}
				mustGetObservers(t, tr, eventObject)
			}
			if diff := cmp.Diff(size{}, sizeOf(tr)); diff != "" {
				t.Errorf("after all tracks expired (-want +got):\n%s", diff)
			}
			checkConsistent(t, tr)
		})
	})
}

// The comparison must not succeed because nothing is ever found.
func TestModelFindsObservers(t *testing.T) {
	choose := chooser{rand.New(rand.NewPCG(1, 0))}
	now := time.Now()
	var m model
	for range 100 {
		m.tracks = append(m.tracks,
			modelTrack{ref: choose.reference(), observer: choose.observer(), expires: now.Add(time.Minute)})
	}
	found := map[string]int{}
	for range 1000 {
		kind := choose.kind()
		found[fmt.Sprint(min(len(m.observersOf(choose.object(kind), kind, now)), 3))]++
	}
	for _, count := range []string{"0", "1", "2", "3"} {
		if found[count] < 50 {
			t.Errorf("%d of 1000 lookups find %s observers (3 is 3 or more), want some of each", found[count], count)
		}
	}
}
