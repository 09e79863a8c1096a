// SPDX-License-Identifier: Apache-2.0

package specs

import (
	"math"
	"regexp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// scalarValues lists values for a property without parts. present is its present value, or nil.
func scalarValues(schema *apiextensionsv1.JSONSchemaProps, name string, present any) []Value {
	if len(schema.Enum) > 0 {
		return enumValues(schema)
	}
	if present == nil {
		if value, ok := defaultOf(schema); ok {
			present = value
		}
	}
	switch {
	case schema.XIntOrString:
		return append(stringValues(schema, name, present), integerValues(schema, present)...)
	case schema.Type == "boolean":
		return []Value{{Content: true}, {Content: false}}
	case schema.Type == "integer":
		return integerValues(schema, present)
	case schema.Type == "number":
		return numberValues(schema, present)
	default:
		return stringValues(schema, name, present)
	}
}

func enumValues(schema *apiextensionsv1.JSONSchemaProps) []Value {
	var values []Value
	for _, raw := range schema.Enum {
		var value any
		if err := utiljson.Unmarshal(raw.Raw, &value); err == nil && value != nil {
			values = append(values, Value{Content: value})
		}
	}
	return append(values, Value{Content: "not-in-the-enum", Doubtful: true})
}

// mostItems is the largest bound that is tried: controllers may create that many objects.
const mostItems = 64

// integerValues are near the present value, and at the bounds.
func integerValues(schema *apiextensionsv1.JSONSchemaProps, present any) []Value {
	least, most := math.Inf(-1), math.Inf(1)
	if schema.Minimum != nil {
		least = *schema.Minimum
	}
	if schema.Maximum != nil {
		most = *schema.Maximum
	}
	base, _ := present.(int64)
	candidates := []int64{base + 1, base + 2, base - 1, 1, 2, 0}
	if !math.IsInf(least, 0) {
		candidates = append(candidates, int64(least), int64(least)+1, int64(least)-1)
	}
	if most <= mostItems {
		candidates = append(candidates, int64(most))
	}
	if !math.IsInf(most, 0) {
		candidates = append(candidates, int64(most)+1)
	}
	var values, doubtful []Value
	for _, n := range append(candidates, -1) {
		outside := float64(n) < least || float64(n) > most
		if v := (Value{Content: n, Doubtful: outside || n < 0 && least < 0 && base >= 0}); v.Doubtful {
			doubtful = append(doubtful, v)
		} else {
			values = append(values, v)
		}
	}
	return append(values, doubtful...)
}

func numberValues(schema *apiextensionsv1.JSONSchemaProps, present any) []Value {
	base, _ := present.(float64)
	if n, ok := present.(int64); ok {
		base = float64(n)
	}
	var values []Value
	for _, n := range []float64{base + 1, base + 0.5, 0.5, 1, 0, -1} {
		outside := schema.Minimum != nil && n < *schema.Minimum || schema.Maximum != nil && n > *schema.Maximum
		values = append(values, Value{Content: n, Doubtful: outside || n < 0})
	}
	slices.SortStableFunc(values, func(a, b Value) int { return doubt(a) - doubt(b) })
	return values
}

func doubt(v Value) int {
	if v.Doubtful {
		return 1
	}
	return 0
}

// stringValues guesses what a text means.
func stringValues(schema *apiextensionsv1.JSONSchemaProps, name string, present any) []Value {
	base, _ := present.(string)
	var pattern *regexp.Regexp
	if schema.Pattern != "" {
		// A pattern of ECMA that Go does not know is not used.
		pattern, _ = regexp.Compile(schema.Pattern)
	}
	m := meaningOf(schema, name, base)
	candidates := m.good
	if len(m.good) == 0 || schema.Pattern != "" {
		candidates = slices.Concat(m.good, derived(base), fromPattern(schema.Pattern))
	}
	var values, doubtful []Value
	for _, s := range candidates {
		if fits(schema, pattern, s) {
			values = append(values, Value{Content: s})
		}
	}
	for _, s := range slices.Concat([]string{""}, m.bad, []string{"Not Valid!"}) {
		doubtful = append(doubtful, Value{Content: s, Doubtful: true})
	}
	return append(values[:min(len(values), 3)], doubtful...)
}

func fits(schema *apiextensionsv1.JSONSchemaProps, pattern *regexp.Regexp, s string) bool {
	return within(int64(len([]rune(s))), schema.MinLength, schema.MaxLength) &&
		(pattern == nil || pattern.MatchString(s))
}

// derived are texts for which no meaning is known.
func derived(base string) []string {
	if base == "" {
		return []string{"one", "two", "three"}
	}
	return []string{base + "-2", "other"}
}

// scalarSample returns one of the values. Texts without a meaning get the number.
func scalarSample(schema *apiextensionsv1.JSONSchemaProps, name string, number int) any {
	values := slices.DeleteFunc(scalarValues(schema, name, nil), func(v Value) bool { return v.Doubtful })
	if len(values) == 0 {
		return nil
	}
	value := values[number%len(values)].Content
	if n, ok := value.(int64); ok && len(schema.Enum) == 0 && schema.Maximum == nil {
		return max(n, 1) + int64(number)
	}
	s, ok := value.(string)
	if !ok || number < len(values) || len(schema.Enum) > 0 || schema.Pattern != "" || schema.Format != "" {
		return value
	}
	return strings.TrimSuffix(s, "-2") + "-" + string(rune('a'+number%26))
}
