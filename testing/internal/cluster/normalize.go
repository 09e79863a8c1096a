// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// exchange is what was sent to a server, and what it returned. In the exchange of a field, both are values of the same
// path; nil stands for no value.
type exchange struct{ sent, got any }

// newExchange returns the exchange of an object, without the metadata that is translated.
func newExchange(sent map[string]any, got *unstructured.Unstructured) exchange {
	fields := content(got)
	if metadata, ok := fields["metadata"].(map[string]any); ok {
		delete(metadata, ownersField)
	}
	return exchange{sent: sent, got: fields}
}

// field returns the exchange of a field.
func (e exchange) field(name string) exchange {
	sent, _ := e.sent.(map[string]any)
	got, _ := e.got.(map[string]any)
	return exchange{sent: sent[name], got: got[name]}
}

// item returns the exchange of an item of a list.
func (e exchange) item(i int) exchange {
	result := exchange{}
	if sent, ok := e.sent.([]any); ok && i < len(sent) {
		result.sent = sent[i]
	}
	if got, ok := e.got.([]any); ok && i < len(got) {
		result.got = got[i]
	}
	return result
}

// descend returns the exchanges of a part of exchanges.
func descend(exchanges []exchange, part func(exchange) exchange) []exchange {
	parts := make([]exchange, len(exchanges))
	for i, e := range exchanges {
		parts[i] = part(e)
	}
	return parts
}

// added reports whether the server added a value that was not sent.
func added(exchanges []exchange, value any) bool {
	return slices.ContainsFunc(exchanges, func(e exchange) bool {
		return isZeroOrEmpty(e.sent) && e.got != nil && equality.Semantic.DeepEqual(e.got, value)
	})
}

// isZeroOrEmpty reports whether a server treats a value that a Go type writes as unset.
func isZeroOrEmpty(value any) bool {
	switch value {
	case false, int64(0), float64(0):
		return true
	}
	return withoutEmpty(value) == nil
}

// Normalize returns expected and observed without the fields of observed that the server added and that expected does
// not have.
func (a *API) Normalize(expected, observed client.Object) (client.Object, client.Object) {
	expectedContent, err := a.toUnstructured(expected)
	if err != nil {
		return expected, observed
	}
	observedContent, err := a.toUnstructured(observed)
	if err != nil {
		return expected, observed
	}
	id, err := a.identify(observedContent.GroupVersionKind(), client.ObjectKeyFromObject(observed))
	if err != nil {
		return expected, observed
	}
	a.lock.Lock()
	exchanges := a.exchanges[id]
	a.lock.Unlock()
	n := &normalizer{}
	content := n.fields("", expectedContent.Object, observedContent.Object, exchanges)
	if !n.changed {
		return expected, observed
	}
	normalized := observed.DeepCopyObject().(client.Object)
	if err := into(content, normalized); err != nil {
		return expected, observed
	}
	if isTyped(normalized) {
		normalized.GetObjectKind().SetGroupVersionKind(observed.GetObjectKind().GroupVersionKind())
	}
	a.lock.Lock()
	defer a.lock.Unlock()
	a.notCompared[id] = append(a.notCompared[id], n.removed...)
	return expected, normalized
}

// normalizer removes the fields that a server added.
type normalizer struct {
	changed bool
	// removed are the removed fields, with their values, unless they are empty.
	removed []string
}

func (n *normalizer) remove(path string, value any) {
	n.changed = true
	if withoutEmpty(value) != nil {
		n.removed = append(n.removed, fieldText(path, value))
	}
}

// value returns an observed value without the added fields.
func (n *normalizer) value(path string, expected, observed any, exchanges []exchange) any {
	switch observed := observed.(type) {
	case map[string]any:
		if expected, ok := expected.(map[string]any); ok {
			return n.fields(path, expected, observed, exchanges)
		}
	case []any:
		if expected, ok := expected.([]any); ok {
			return n.items(path, expected, observed, exchanges)
		}
	}
	return observed
}

func (n *normalizer) fields(path string, expected, observed map[string]any, exchanges []exchange) map[string]any {
	kept := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(observed)) {
		path := fieldPath(path, name)
		below := descend(exchanges, func(e exchange) exchange { return e.field(name) })
		value, want := observed[name], expected[name]
		switch _, ok := expected[name]; {
		case !isZeroOrEmpty(want):
			kept[name] = n.value(path, want, value, below)
		case added(below, value):
			n.remove(path, value)
			if ok {
				kept[name] = want
			}
		default:
			// Go types write empty structs instead of leaving them out, and fields in them may be absent
			rest := n.value(path, map[string]any{}, value, below)
			if isZeroOrEmpty(rest) && ok {
				rest = want
			}
			if !isZeroOrEmpty(rest) || isZeroOrEmpty(value) || ok {
				kept[name] = rest
			}
		}
	}
	return kept
}

func (n *normalizer) items(path string, expected, observed []any, exchanges []exchange) []any {
	item := func(i int) (string, []exchange) {
		return fmt.Sprintf("%s[%d]", path, i), descend(exchanges, func(e exchange) exchange { return e.item(i) })
	}
	for i := len(expected); i < len(observed); i++ {
		if _, below := item(i); !added(below, observed[i]) {
			return observed // it cannot be told which item is which
		}
	}
	kept := []any{}
	for i, value := range observed {
		path, below := item(i)
		if i < len(expected) {
			kept = append(kept, n.value(path, expected[i], value, below))
		} else {
			n.remove(path, value)
		}
	}
	return kept
}

// fieldText formats a field with its value.
func fieldText(path string, value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		text = fmt.Append(nil, value)
	}
	return fmt.Sprintf("%s = %s", path, text)
}

// fieldPath returns the path of a field.
func fieldPath(path, name string) string {
	if path == "" {
		return name
	}
	for _, r := range name {
		if r == '.' || r == '/' {
			return fmt.Sprintf("%s[%q]", path, name)
		}
	}
	return path + "." + name
}
