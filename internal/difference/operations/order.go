// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
)

// InOrder returns the operations sorted by path, as far as their order has no effect. Operations that add or remove
// items of a list keep their order relative to other operations on that list. So do operations on the same value, or on
// a value inside of it. The document that is patched distinguishes lists from maps whose keys are numbers. It may be
// nil: then numbers are treated as indexes.
func InOrder(patch []jsonpatch.Operation, document any) []jsonpatch.Operation {
	located := make([]located, len(patch))
	for i, operation := range patch {
		if !slices.Contains([]string{"add", "remove", "replace"}, operation.Operation) {
			return patch // a test guards the following operations; a move or a copy depends on the earlier ones
		}
		located[i].Operation = operation
		if operation.Path != "" {
			located[i].rest = strings.Split(operation.Path[1:], "/")
		}
	}
	ordered := make([]jsonpatch.Operation, 0, len(patch))
	for _, l := range sorted(located, document) {
		ordered = append(ordered, l.Operation)
	}
	return ordered
}

// located is an operation and the rest of its path below the current value.
type located struct {
	jsonpatch.Operation
	rest []string
}

// sorted sorts the operations on a value and on the values inside of it.
func sorted(patch []located, value any) []located {
	if len(patch) < 2 || slices.ContainsFunc(patch, func(l located) bool { return len(l.rest) == 0 }) {
		return patch
	}
	if !isList(patch, value) {
		object, _ := value.(map[string]any)
		return byToken(patch, strings.Compare, func(token string) any { return object[unescape(token)] })
	}
	// jsonpatch adds and removes at the end of a list: the earlier items keep their position in the document.
	items, _ := value.([]any)
	item := func(token string) any {
		if i, err := strconv.Atoi(token); err == nil && i < len(items) {
			return items[i]
		}
		return nil
	}
	var ordered []located
	for len(patch) > 0 {
		if movesItems(patch[0]) {
			ordered, patch = append(ordered, patch[0]), patch[1:]
			continue
		}
		n := slices.IndexFunc(patch, movesItems)
		if n < 0 {
			n = len(patch)
		}
		ordered = append(ordered, byToken(patch[:n], byIndex, item)...)
		patch = patch[n:]
	}
	return ordered
}

// byToken groups operations by the first token of the rest of their paths. It sorts the groups and the operations in
// each group.
func byToken(patch []located, compare func(a, b string) int, inside func(token string) any) []located {
	groups := map[string][]located{}
	for _, l := range patch {
		token := l.rest[0]
		l.rest = l.rest[1:]
		groups[token] = append(groups[token], l)
	}
	var ordered []located
	for _, token := range slices.SortedFunc(maps.Keys(groups), compare) {
		ordered = append(ordered, sorted(groups[token], inside(token))...)
	}
	return ordered
}

// isList reports whether the value is a list. If there is no value, it reports whether the operations treat it as a
// list.
func isList(patch []located, value any) bool {
	switch value.(type) {
	case []any:
		return true
	case map[string]any:
		return false
	}
	return !slices.ContainsFunc(patch, func(l located) bool { return !isIndex(l.rest[0]) })
}

func movesItems(l located) bool {
	return len(l.rest) == 1 && l.Operation.Operation != "replace"
}

// isIndex reports whether a token may be an index of a list, or the token for its end.
func isIndex(token string) bool {
	return token == "-" || token != "" && strings.Trim(token, "0123456789") == ""
}

func byIndex(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

func unescape(token string) string {
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
}
