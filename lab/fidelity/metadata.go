// SPDX-License-Identifier: Apache-2.0

package fidelity

// metadataChanges are changes that a server accepts for objects of all kinds.
var metadataChanges = []Edit{
	Set("metadata/labels/app", "x"),
	Set("metadata/labels/app", "x"),
	Set("metadata/labels/app", "y"),
	Remove("metadata/labels/app"),
	Set("metadata/labels/tier", ""),
	Set("metadata/annotations/note", "one"),
	Set("metadata/annotations/note", "two"),
	Set("metadata/annotations", Object{"example.com/slash": "x"}),
	Remove("metadata/annotations"),
	Set("metadata/generation", int64(7)),
	Set("metadata/creationTimestamp", "2001-01-01T00:00:00Z"),
	Set("metadata/deletionTimestamp", "2001-01-01T00:00:00Z"),
	Set("metadata/selfLink", "/self"),
	Set("metadata/ownerReferences", []any{owner("one", true)}),
	Set("metadata/ownerReferences", []any{owner("one", true), owner("two", false)}),
	Set("metadata/ownerReferences", []any{}),
}

// finalizerChanges add and remove finalizers.
var finalizerChanges = []Edit{
	Set("metadata/finalizers", []any{"example.com/one"}),
	Set("metadata/finalizers", []any{"example.com/one"}),
	Set("metadata/finalizers", []any{"example.com/one", "example.com/two"}),
	Set("metadata/finalizers", []any{"example.com/two"}),
	Set("metadata/finalizers", []any{"foregroundDeletion"}),
	Set("metadata/finalizers", []any{"orphan", "example.com/one"}),
	Set("metadata/finalizers", []any{}),
	Set("metadata/finalizers", []any{}),
	Remove("metadata/finalizers"),
	Remove("metadata/finalizers"),
}

// metadataFaults are changes that a server rejects for objects of all kinds.
var metadataFaults = []Edit{
	Set("metadata/name", "Not_A_Name"),
	Set("metadata/labels", Object{"not a key": "x"}),
	Set("metadata/labels/app", "not a value!"),
	Set("metadata/annotations", Object{"not a key": "x"}),
	Set("metadata/finalizers", []any{"unqualified"}),
	Set("metadata/finalizers", []any{"not a name/at all"}),
	Set("metadata/ownerReferences", []any{owner("one", true), owner("two", true)}),
	Set("metadata/ownerReferences", []any{Object{"apiVersion": "v1", "kind": "ConfigMap", "name": "one"}}),
	Set("metadata/ownerReferences", []any{Object{"apiVersion": "v1", "kind": "", "name": "", "uid": "u"}}),
	Set("metadata/ownerReferences", []any{Object{"apiVersion": "v1", "kind": "Event", "name": "one", "uid": "u"}}),
}

// identityFaults are changes of immutable metadata.
var identityFaults = []Edit{
	Set("metadata/uid", "00000000-0000-0000-0000-00000000dead"),
	Remove("metadata/uid"),
	Set("metadata/name", string(TokenAnother)),
	Set("metadata/name", ""),
	Set("metadata/namespace", "another"),
	Set("metadata/namespace", ""),
	Set("metadata/generateName", "later-"),
	Set("kind", "Another"),
	Set("apiVersion", "another.example.com/v1"),
}

func owner(name string, controller bool) Object {
	return Object{
		"apiVersion": "v1", "kind": "ConfigMap", "name": name,
		"uid":        "00000000-0000-0000-0000-0000000000" + map[string]string{"one": "01", "two": "02"}[name],
		"controller": controller, "blockOwnerDeletion": true,
	}
}
