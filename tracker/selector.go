// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"encoding/binary"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	ops "k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// unwrap returns the selector that does the matching.
func unwrap(selector labels.Selector) labels.Selector {
	for {
		option, ok := selector.(client.MatchingLabelsSelector)
		if !ok {
			return selector
		}
		if option.Selector == nil {
			return labels.Nothing() // as a list with this option does
		}
		selector = option.Selector
	}
}

var standardSelector = reflect.TypeOf(labels.Everything())

// requirementsOf returns the requirements of the selector. It returns none for a selector of a foreign type: its
// requirements may differ from what it matches.
func requirementsOf(selector labels.Selector) (_ labels.Requirements, ok bool) {
	if reflect.TypeOf(selector) != standardSelector {
		return nil, false
	}
	return selector.Requirements()
}

// appendIdentity appends the identity of the selector, because selectors are not comparable. Equivalent requirements
// have the same identity: "a=b" is "a in (b)", and the order of values does not matter. Foreign selectors are the same
// if they have the same type and the same text.
func appendIdentity(id []byte, selector labels.Selector) []byte {
	requirements, ok := requirementsOf(selector)
	if !ok {
		id = appendText(append(id, 'f'), reflect.TypeOf(selector).String())
		return append(id, selector.String()...)
	}
	for i := range requirements {
		requirement := &requirements[i]
		id = appendText(id, string(meaning(requirement.Operator())))
		id = appendText(id, requirement.Key())
		values := sorted(requirement.ValuesUnsorted())
		id = binary.AppendUvarint(id, uint64(len(values)))
		for _, value := range values {
			id = appendText(id, value)
		}
	}
	return id
}

// appendText appends the text with its length, so that different sequences of texts never have the same result. Labels
// of a selector are not validated and may hold any character.
func appendText(id []byte, text string) []byte {
	return append(binary.AppendUvarint(id, uint64(len(text))), text...)
}

// meaning returns the equivalent operator that takes any number of values.
func meaning(operator ops.Operator) ops.Operator {
	switch operator {
	case ops.Equals, ops.DoubleEquals:
		return ops.In
	case ops.NotEquals:
		return ops.NotIn
	default:
		return operator
	}
}

// sorted sorts the values in place and removes duplicates.
func sorted(values []string) []string {
	slices.Sort(values)
	return slices.Compact(values)
}
