// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func mustParse(t testing.TB, selector string) labels.Selector {
	t.Helper()
	parsed, err := labels.Parse(selector)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// candidates counts the selectors that a lookup evaluates.
func candidates(x *index, namespace string, set labels.Set) int {
	count := x.present.entries[label{namespace: namespace}].length
	for key, value := range set {
		count += x.equal.entries[label{namespace, key, value}].length
		count += x.present.entries[label{namespace: namespace, key: key}].length
	}
	return count
}

// A lookup evaluates the selectors that match and few others, however many selectors exist.
func TestLookupsCostWhatTheyReturn(t *testing.T) {
	const selectors = 2000
	tests := map[string]struct {
		reason string
		// selector contains # in place of the number of the selector.
		selector string
		labels   labels.Set
		// matching is the number of selectors that match.
		matching int
		// most is the maximum number of selectors that may be evaluated.
		most int
	}{
		"Equality": {
			reason:   "the value of the label selects",
			selector: "name=#",
			labels:   labels.Set{"name": "7", "app": "site"},
			matching: 1, most: 1,
		},
		"CommonLabelFirst": {
			reason:   "a label that all selectors require does not select",
			selector: "app=site,name=#",
			labels:   labels.Set{"name": "7", "app": "site"},
			matching: 1, most: 2,
		},
		"CommonLabelLast": {
			reason:   "the order of requirements does not matter",
			selector: "name=#,tier=web",
			labels:   labels.Set{"name": "7", "tier": "web"},
			matching: 1, most: 2,
		},
		"SeveralValues": {
			reason:   "each value is in the index",
			selector: "app=site,name in (#,x#)",
			labels:   labels.Set{"name": "x7", "app": "site"},
			matching: 1, most: 2,
		},
		"OnlyTheCommonLabel": {
			reason:   "an object with no other label matches none",
			selector: "app=site,name=#",
			labels:   labels.Set{"app": "site"},
			matching: 0, most: 1,
		},
		"Presence": {
			reason:   "the key selects",
			selector: "name-#",
			labels:   labels.Set{"name-7": "", "app": "site"},
			matching: 1, most: 1,
		},
		"CommonLabelAndPresence": {
			reason:   "a rare key selects better than a common value",
			selector: "app=site,name-#",
			labels:   labels.Set{"name-7": "", "app": "site"},
			matching: 1, most: presencePenalty + 2,
		},
		"CommonPresenceAndLabel": {
			reason:   "a value selects better than a key",
			selector: "app,name=#",
			labels:   labels.Set{"app": "site", "name": "7"},
			matching: 1, most: 1,
		},
		"GreaterThan": {
			reason:   "the key must be present",
			selector: "version-#>3",
			labels:   labels.Set{"version-7": "4"},
			matching: 1, most: 1,
		},
		"NotEqual": {
			reason:   "nearly all match",
			selector: "name!=#",
			labels:   labels.Set{"name": "7"},
			matching: selectors - 1, most: selectors,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tr := newTracker(clientgoscheme.Scheme, time.Hour)
			for i := range selectors {
				selector := mustParse(t, strings.ReplaceAll(tt.selector, "#", fmt.Sprint(i)))
				mustTrack(t, tr, Reference{Kind: "ConfigMap", Namespace: "ns", Selector: selector}, observerNamed(fmt.Sprint(i)))
				mustTrack(t, tr, Reference{Kind: "ConfigMap", Namespace: "other", Selector: selector}, observerNamed(fmt.Sprint(i)))
			}
			found := mustGetObservers(t, tr, &corev1.ConfigMap{ObjectMeta: metaOf("ns", "a", tt.labels)})
			if len(found) != tt.matching {
				t.Errorf("found %d observers, want %d", len(found), tt.matching)
			}
			k := tr.kinds.entries[byName.groupKind()]
			if got := candidates(&k.inNamespace, "ns", tt.labels); got > tt.most {
				t.Errorf("%s: evaluated %d of %d selectors, want at most %d", tt.reason, got, selectors, tt.most)
			}
			checkConsistent(t, tr)
		})
	}
}

func TestManyValuesTakeOnePlace(t *testing.T) {
	values := func(count int) labels.Selector {
		list := make([]string, count)
		for i := range list {
			list[i] = fmt.Sprint(i)
		}
		return mustParse(t, "name in ("+strings.Join(list, ",")+")")
	}
	for count, want := range map[int]int{mostValues: mostValues, mostValues + 1: 1} {
		tr := newTracker(clientgoscheme.Scheme, time.Hour)
		mustTrack(t, tr, Reference{Kind: "ConfigMap", Namespace: "ns", Selector: values(count)}, observerNamed("a"))
		if got := sizeOf(tr).Labels; got != want {
			t.Errorf("a selector of %d values takes %d places, want %d", count, got, want)
		}
		for value, want := range map[string][]string{"5": {"a"}, "x": nil} {
			got := mustGetObservers(t, tr, &corev1.ConfigMap{ObjectMeta: metaOf("ns", "a", map[string]string{"name": value})})
			if diff := cmp.Diff(observerNames(want...), got); diff != "" {
				t.Errorf("name=%s among %d values (-want +got):\n%s", value, count, diff)
			}
		}
	}
}

// whimsical matches something else than its requirements state.
type whimsical struct{ labels.Selector }

func (whimsical) Matches(set labels.Labels) bool { return set.Has("whim") }

func TestForeignSelectors(t *testing.T) {
	tests := map[string]struct {
		reason   string
		selector labels.Selector
		match    labels.Set
		not      labels.Set
	}{
		"Foreign": {
			reason:   "a foreign selector matches by its own code, not by its requirements",
			selector: whimsical{mustParse(t, "color=blue")},
			match:    labels.Set{"whim": ""},
			not:      labels.Set{"color": "blue"},
		},
		"ListOption": {
			reason:   "list options pass a selector on in a type of their own",
			selector: client.MatchingLabelsSelector{Selector: mustParse(t, "color=blue")},
			match:    labels.Set{"color": "blue"},
			not:      labels.Set{"color": "red"},
		},
		"ListOptionTwice": {
			reason: "options can be nested",
			selector: client.MatchingLabelsSelector{
				Selector: client.MatchingLabelsSelector{Selector: mustParse(t, "color=blue")},
			},
			match: labels.Set{"color": "blue"},
			not:   labels.Set{"color": "red"},
		},
		"EmptyListOption": {
			reason:   "a list with this option returns nothing",
			selector: client.MatchingLabelsSelector{},
			not:      labels.Set{"color": "blue"},
		},
		"Unvalidated": {
			reason:   "a selector from a set may hold what no label can",
			selector: labels.SelectorFromSet(labels.Set{"color": "blue,size=s", "": "x"}),
			match:    labels.Set{"color": "blue,size=s", "": "x"},
			not:      labels.Set{"color": "blue", "size": "s", "": "x"},
		},
		"KeylessPresence": {
			reason:   "selectors without requirements share a list with those for an empty key",
			selector: mustParse(t, "!color"),
			match:    labels.Set{"": "x"},
			not:      labels.Set{"": "x", "color": "blue"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tr := newTracker(clientgoscheme.Scheme, time.Hour)
			mustTrack(t, tr, Reference{Kind: "ConfigMap", Selector: tt.selector}, observerNamed("a"))
			check := func(set labels.Set, want ...string) {
				t.Helper()
				got := mustGetObservers(t, tr, &corev1.ConfigMap{ObjectMeta: metaOf("ns", "a", set)})
				if diff := cmp.Diff(observerNames(want...), got); diff != "" {
					t.Errorf("%s: observers of %v (-want +got):\n%s", tt.reason, set, diff)
				}
			}
			if tt.match != nil {
				check(tt.match, "a")
			}
			check(tt.not)
		})
	}
}
