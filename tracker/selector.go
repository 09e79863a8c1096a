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
			return labels.Nothing() // as a list with this option
		}
		selector = option.Selector
	}
}

var standardSelector = reflect.TypeOf(labels.Everything())

// requirementsOf returns the requirements of which a selector consists. There
// are none for a selector of a foreign type: what it says that it requires need
// not be what it matches.
func requirementsOf(selector labels.Selector) (_ labels.Requirements, ok bool) {
	if reflect.TypeOf(selector) != standardSelector {
		return nil, false
	}
	return selector.Requirements()
}

// appendIdentity appends what tells the selector from others, as selectors are
// not comparable. Requirements count by their meaning: "a=b" is "a in (b)", and
// the order of values does not matter. Foreign selectors are the same when they
// are of one type and read the same.
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

// appendText appends the text such that no other text can follow with the same
// result: labels of a selector may hold any character, they are not validated.
func appendText(id []byte, text string) []byte {
	return append(binary.AppendUvarint(id, uint64(len(text))), text...)
}

// meaning is the operator in the form that takes any number of values.
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

// sorted sorts the values in place and returns each once.
func sorted(values []string) []string {
	slices.Sort(values)
	return slices.Compact(values)
}
