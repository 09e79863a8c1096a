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
		"Same":             {"made of the same text", mustParse(t, "a=b,c"), mustParse(t, "a=b,c"), true},
		"Order":            {"selectors sort their requirements", mustParse(t, "a=b,c"), mustParse(t, "c,a=b"), true},
		"OrderOfValues":    {"the order of values means nothing", in("red", "blue"), in("blue", "red"), true},
		"RepeatedValues":   {"nor does saying one twice", in("red", "blue", "red"), in("blue", "red"), true},
		"Equals":           {"three ways to say it", mustParse(t, "a=b"), mustParse(t, "a==b"), true},
		"EqualsIn":         {"three ways to say it", mustParse(t, "a=b"), mustParse(t, "a in (b)"), true},
		"NotEqualsNotIn":   {"two ways to say it", mustParse(t, "a!=b"), mustParse(t, "a notin (b)"), true},
		"FromSet":          {"how it was made does not matter", mustParse(t, "a=b"), labels.SelectorFromSet(labels.Set{"a": "b"}), true},
		"EmptySet":         {"nothing required is everything", labels.Everything(), labels.SelectorFromSet(nil), true},
		"ListOption":       {"the option is only how it was passed", mustParse(t, "a=b"), client.MatchingLabelsSelector{Selector: mustParse(t, "a=b")}, true},
		"Value":            {"another value", mustParse(t, "a=b"), mustParse(t, "a=c"), false},
		"Key":              {"another key", mustParse(t, "a=b"), mustParse(t, "b=b"), false},
		"Operator":         {"another operator", mustParse(t, "a=b"), mustParse(t, "a!=b"), false},
		"Presence":         {"absent is not present", mustParse(t, "a"), mustParse(t, "!a"), false},
		"Comparison":       {"less is not greater", mustParse(t, "a>1"), mustParse(t, "a<1"), false},
		"More":             {"one requirement more", mustParse(t, "a=b"), mustParse(t, "a=b,c"), false},
		"EverythingNone":   {"both read the same", labels.Everything(), labels.Nothing(), false},
		"Unvalidated":      {"both read the same", labels.SelectorFromSet(labels.Set{"a": "b,c=d"}), mustParse(t, "a=b,c=d"), false},
		"EmptyValue":       {"an empty value is a value", mustParse(t, "a="), mustParse(t, "a"), false},
		"Foreign":          {"a type that matches in its own way", whimsical{mustParse(t, "a=b")}, mustParse(t, "a=b"), false},
		"ForeignSame":      {"of one type and reading the same", whimsical{mustParse(t, "a=b")}, whimsical{mustParse(t, "a=b")}, true},
		"ForeignDifferent": {"of one type", whimsical{mustParse(t, "a=b")}, whimsical{mustParse(t, "a=c")}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a, b := string(appendIdentity(nil, unwrap(tt.a))), string(appendIdentity(nil, unwrap(tt.b)))
			if same := a == b; same != tt.same {
				t.Errorf("%s: %q and %q are taken for the same: %t, want %t", tt.reason, tt.a, tt.b, same, tt.same)
			}
		})
	}
}
