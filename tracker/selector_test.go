// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	ops "k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestIdentity(t *testing.T) {
	in := func(values ...string) labels.Selector {
		requirement, err := labels.NewRequirement("color", ops.In, values)
		if err != nil {
			t.Fatal(err)
		}
		return labels.NewSelector().Add(*requirement)
	}
	tests := map[string]struct {
		reason string
		a, b   labels.Selector
		same   bool
	}{
		"Same":           {"made of the same text", mustParse(t, "a=b,c"), mustParse(t, "a=b,c"), true},
		"Order":          {"selectors sort their requirements", mustParse(t, "a=b,c"), mustParse(t, "c,a=b"), true},
		"OrderOfValues":  {"the order of values means nothing", in("red", "blue"), in("blue", "red"), true},
		"RepeatedValues": {"repeated values mean nothing", in("red", "blue", "red"), in("blue", "red"), true},
		"Equals":         {"equivalent operators", mustParse(t, "a=b"), mustParse(t, "a==b"), true},
		"EqualsIn":       {"equivalent operators", mustParse(t, "a=b"), mustParse(t, "a in (b)"), true},
		"NotEqualsNotIn": {"equivalent operators", mustParse(t, "a!=b"), mustParse(t, "a notin (b)"), true},
		"FromSet": {
			"how it was made does not matter",
			mustParse(t, "a=b"),
			labels.SelectorFromSet(labels.Set{"a": "b"}),
			true,
		},
		"EmptySet": {"no requirements select everything", labels.Everything(), labels.SelectorFromSet(nil), true},
		"ListOption": {
			"the list option only wraps the selector",
			mustParse(t, "a=b"),
			client.MatchingLabelsSelector{Selector: mustParse(t, "a=b")},
			true,
		},
		"Value":          {"another value", mustParse(t, "a=b"), mustParse(t, "a=c"), false},
		"Key":            {"another key", mustParse(t, "a=b"), mustParse(t, "b=b"), false},
		"Operator":       {"another operator", mustParse(t, "a=b"), mustParse(t, "a!=b"), false},
		"Presence":       {"absent is not present", mustParse(t, "a"), mustParse(t, "!a"), false},
		"Comparison":     {"less is not greater", mustParse(t, "a>1"), mustParse(t, "a<1"), false},
		"More":           {"an additional requirement", mustParse(t, "a=b"), mustParse(t, "a=b,c"), false},
		"EverythingNone": {"both have the same text", labels.Everything(), labels.Nothing(), false},
		"Unvalidated": {
			"both have the same text",
			labels.SelectorFromSet(labels.Set{"a": "b,c=d"}),
			mustParse(t, "a=b,c=d"),
			false,
		},
		"EmptyValue": {"an empty value is a value", mustParse(t, "a="), mustParse(t, "a"), false},
		"Foreign": {
			"a foreign selector has its own matching",
			whimsical{mustParse(t, "a=b")},
			mustParse(t, "a=b"),
			false,
		},
		"ForeignSame": {"same type, same text", whimsical{mustParse(t, "a=b")}, whimsical{mustParse(t, "a=b")}, true},
		"ForeignDifferent": {
			"same type, different text",
			whimsical{mustParse(t, "a=b")},
			whimsical{mustParse(t, "a=c")},
			false,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a, b := string(appendIdentity(nil, unwrap(tt.a))), string(appendIdentity(nil, unwrap(tt.b)))
			if same := a == b; same != tt.same {
				t.Errorf("%s: %q and %q have the same identity: got %t, want %t", tt.reason, tt.a, tt.b, same, tt.same)
			}
		})
	}
}
