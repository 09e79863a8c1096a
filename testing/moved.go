// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"encoding/json"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// movedVersions are the resource versions that objects got by patches of their finalizers: first the one before such a
// patch, then one for each. Which numbers an API gives is of no interest to a test, so expectations may go on with the
// version before, or leave it out.
type movedVersions map[identity][]string

// note notes that a patch has moved an object from one version to another.
func (m movedVersions) note(id identity, from, to string) {
	versions := m[id]
	if len(versions) == 0 || versions[len(versions)-1] != from {
		versions = []string{from}
	}
	m[id] = append(versions, to)
}

// before returns the versions that an object had before it got this one by patches of its finalizers, and nothing when
// it got it otherwise.
func (m movedVersions) before(id identity, version string) []string {
	versions := m[id]
	return versions[:max(0, slices.Index(versions, version))]
}

// patchesFinalizers reports whether a merge patch changes finalizers.
func patchesFinalizers(patch []byte) bool {
	parsed := struct {
		Metadata map[string]any `json:"metadata"`
	}{}
	err := json.Unmarshal(patch, &parsed)
	_, ok := parsed.Metadata["finalizers"]
	return err == nil && ok
}

// noteMoved notes the version that a patch of finalizers has given to an object that had another one.
func (w *clientWrapper) noteMoved(action PatchAction, from string, obj client.Object) {
	to := obj.GetResourceVersion()
	if from == "" || from == to || !patchesFinalizers(action.GetPatch()) {
		return
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	if w.moved == nil {
		w.moved = movedVersions{}
	}
	kind := action.GetResource()
	w.moved.note(identity{kind.Group, kind.Resource, action.GetNamespace(), action.GetName()}, from, to)
}

// settleVersion returns the expected object with the version of the observed one where that has got it by patches of
// its finalizers, and the test gives none, or the one before.
func (c *ExpectConfig) settleVersion(expected, observed client.Object, given bool) client.Object {
	before := c.movedVersions().before(c.identity(observed), observed.GetResourceVersion())
	if len(before) == 0 || given && !slices.Contains(before, expected.GetResourceVersion()) {
		return expected
	}
	expected = expected.DeepCopyObject().(client.Object)
	expected.SetResourceVersion(observed.GetResourceVersion())
	return expected
}

// diffPatch compares patches. The version of an object whose finalizers were patched before may be the one before that,
// or missing.
func (c *ExpectConfig) diffPatch(expected, observed PatchRef) string {
	diff := c.differ().PatchRef(expected, observed)
	if diff == "" {
		return ""
	}
	content := map[string]any{}
	if err := json.Unmarshal(observed.Patch, &content); err != nil {
		return diff
	}
	metadata, _ := content["metadata"].(map[string]any)
	version, _ := metadata["resourceVersion"].(string)
	before := c.movedVersions().before(identity{observed.Group, observed.Kind, observed.Namespace, observed.Name}, version)
	if len(before) == 0 {
		return diff
	}
	same := func() bool {
		patch, err := json.Marshal(content)
		observed.Patch = patch
		return err == nil && c.differ().PatchRef(expected, observed) == ""
	}
	for _, version := range before {
		metadata["resourceVersion"] = version
		if same() {
			return ""
		}
	}
	delete(metadata, "resourceVersion")
	if len(metadata) == 0 {
		delete(content, "metadata")
	}
	if same() {
		return ""
	}
	return diff
}

func (c *ExpectConfig) movedVersions() movedVersions { return c.actions().moved }
