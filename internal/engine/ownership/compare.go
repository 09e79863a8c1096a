// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"maps"
	"slices"
	"strings"
)

// Difference is a reason why a server-side apply may have an effect.
type Difference struct {
	// Path is the path of the field, for example ".spec.ports[port=80,protocol=TCP].name".
	Path string
	// Reason is one of the reasons below.
	Reason Reason
	// Desired and Stored are the values, or nil.
	Desired, Stored any
}

// Reason says how a field differs.
type Reason string

const (
	// NotOwned is a desired field that the owner does not own.
	NotOwned Reason = "not owned"
	// NotDesired is a field that the owner owns and the author no longer sets.
	NotDesired Reason = "no longer desired"
	// OtherValue is a field whose stored value differs. It may be a default within a value that is owned as a whole, or
	// the same value in another form.
	OtherValue Reason = "other value"
	// OtherOrder is a list whose items are stored in another order.
	OtherOrder Reason = "other order"
)

// Comparison is the result of [Compare].
type Comparison struct {
	// Differences are sorted by path.
	Differences []Difference
	// Merged is the stored object with the desired values of the fields whose values differ.
	Merged map[string]any
}

// OnlyValues reports whether the owner owns exactly the desired fields, so that only values differ, if anything does.
func (c Comparison) OnlyValues() bool {
	return !slices.ContainsFunc(c.Differences, func(d Difference) bool { return d.Reason != OtherValue })
}

// Compare compares a document, as [Document] returns it, with a stored object and the fields that the owner owns. It
// changes none of its arguments.
func Compare(desired, stored map[string]any, owned Fields) Comparison {
	c := &comparison{}
	wanted := maps.Clone(desired)
	// The identity of an object has no owner.
	for _, field := range []string{"apiVersion", "kind"} {
		delete(wanted, field)
	}
	if metadata, ok := wanted["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		for _, field := range []string{"name", "namespace", "generateName"} {
			delete(metadata, field)
		}
		wanted["metadata"] = metadata
		if _, ownsMetadata := owned.below("f:metadata"); len(metadata) == 0 && !ownsMetadata {
			delete(wanted, "metadata")
		}
	}
	merged := c.object("", wanted, stored, owned, nil)
	slices.SortStableFunc(c.found, func(a, b Difference) int {
		if a.Path < b.Path {
			return -1
		} else if a.Path > b.Path {
			return 1
		}
		return 0
	})
	return Comparison{Differences: c.found, Merged: merged}
}

type comparison struct{ found []Difference }

func (c *comparison) add(path string, reason Reason, desired, stored any) {
	c.found = append(c.found, Difference{path, reason, desired, stored})
}

// value compares one desired value, and returns the stored value with the desired one merged into it.
func (c *comparison) value(path string, desired, stored any, owned Fields, keys *item) any {
	if owned.whole() {
		if !same(desired, stored) {
			c.add(path, OtherValue, desired, stored)
		}
		return desired
	}
	switch wanted := desired.(type) {
	case map[string]any:
		content, ok := stored.(map[string]any)
		if !ok {
			c.add(path, OtherValue, desired, stored)
			return desired
		}
		return c.object(path, wanted, content, owned, keys)
	case []any:
		content, ok := stored.([]any)
		if !ok && stored != nil {
			c.add(path, OtherValue, desired, stored)
			return desired
		}
		return c.list(path, wanted, content, owned)
	}
	c.add(path, OtherValue, desired, stored)
	return desired
}

// object compares the fields of an object, or of an item of a list, whose keys need no owner of their own.
func (c *comparison) object(path string, desired, stored map[string]any, owned Fields, keys *item) map[string]any {
	merged := maps.Clone(stored)
	for name, value := range desired {
		fields, ok := owned.below("f:" + name)
		if !ok {
			if keys != nil && keys.hasKey(name) {
				continue
			}
			c.add(path+"."+name, NotOwned, value, stored[name])
			continue
		}
		merged[name] = c.value(path+"."+name, value, stored[name], fields, nil)
	}
	for key := range owned {
		name, isField := cutField(key)
		if !isField || keys != nil && keys.hasKey(name) {
			continue
		}
		if _, ok := desired[name]; !ok {
			c.add(path+"."+name, NotDesired, nil, stored[name])
		}
	}
	return merged
}

func cutField(key string) (name string, ok bool) {
	if len(key) > 2 && key[:2] == "f:" {
		return key[2:], true
	}
	return "", false
}

// list compares the items of a list, each of which has owners of its own.
func (c *comparison) list(path string, desired, stored []any, owned Fields) []any {
	items := owned.items()
	found := make([]*item, len(desired))
	for _, exact := range []bool{true, false} {
		for i, value := range desired {
			if found[i] == nil {
				if found[i] = find(items, value, exact); found[i] != nil {
					found[i].used = true
				}
			}
		}
	}
	merged := slices.Clone(stored)
	last := -1
	for i, value := range desired {
		it := found[i]
		if it == nil {
			c.add(path+"[]", NotOwned, value, nil)
			continue
		}
		place := it.in(stored)
		if place < 0 {
			c.add(path+it.String(), OtherValue, value, nil)
			merged = append(merged, value)
			continue
		}
		if place < last {
			c.add(path, OtherOrder, nil, nil)
		}
		last = place
		if it.isKey {
			merged[place] = c.value(path+it.String(), value, stored[place], it.fields, it)
		}
	}
	for _, it := range items {
		if !it.used {
			c.add(path+it.String(), NotDesired, nil, nil)
		}
	}
	return merged
}

// Kept returns the paths of the desired values that an apply did not store, if it stored none: the differences after it
// are those before it. A field that only got an owner is not among them.
func Kept(before, after []Difference) []string {
	requested, stored := leaves(before), leaves(after)
	kept := []string{}
	for _, d := range requested {
		if !slices.ContainsFunc(stored, func(a Difference) bool { return a.Path == d.Path && same(a.Stored, d.Stored) }) {
			return nil
		}
		kept = append(kept, strings.TrimPrefix(d.Path, "."))
	}
	return kept
}

// leaves returns the differences of values. A field that is not owned, or is owned as a whole, is split into its fields
// that differ.
func leaves(differences []Difference) (found []Difference) {
	for _, d := range differences {
		if d.Reason == NotOwned || d.Reason == OtherValue {
			found = appendLeaves(found, d)
		}
	}
	return found
}

func appendLeaves(found []Difference, d Difference) []Difference {
	desired, isMap := d.Desired.(map[string]any)
	stored, bothMaps := d.Stored.(map[string]any)
	switch {
	case same(d.Desired, d.Stored):
	case isMap && bothMaps:
		for _, name := range slices.Sorted(maps.Keys(desired)) {
			found = appendLeaves(found, Difference{d.Path + "." + name, d.Reason, desired[name], stored[name]})
		}
	default:
		found = append(found, d)
	}
	return found
}
