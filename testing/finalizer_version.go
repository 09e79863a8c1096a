// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"encoding/json"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// movedVersions are the resource versions of objects whose finalizers were patched: first the version before the
// patches, then one for each patch. The numbers depend on the API, so expectations may keep the version before the
// patches, or omit it.
type movedVersions map[identity][]string

// note records that a patch has changed the version of an object.
func (m movedVersions) note(id identity, from, to string) {
	versions := m[id]
	if len(versions) == 0 || versions[len(versions)-1] != from {
		versions = []string{from}
	}
	m[id] = append(versions, to)
}

// before returns the versions that an object had before patches of its finalizers led to this one. It returns nothing
// if the version has another origin.
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

// noteMoved records the version of an object after a patch of its finalizers, if the patch has changed it.
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

// settleVersion returns the expected object. If patches of finalizers have led to the version of the observed object,
// and the test gives no version or the one before the patches, the expected object gets the observed version.
func (c *ExpectConfig) settleVersion(expected, observed client.Object, given bool) client.Object {
	before := c.movedVersions().before(c.identity(observed), observed.GetResourceVersion())
	if len(before) == 0 || given && !slices.Contains(before, expected.GetResourceVersion()) {
		return expected
	}
	expected = expected.DeepCopyObject().(client.Object)
	expected.SetResourceVersion(observed.GetResourceVersion())
	return expected
}

// diffPatch compares patches. For an object whose finalizers were patched earlier, an expected patch may have the
// version before that patch, or none.
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
