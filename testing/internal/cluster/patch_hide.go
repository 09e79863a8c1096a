// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// hiddenPatch is a patch translated for the cluster.
type hiddenPatch struct {
	// version is the resource version in the patch of the case. Empty for none.
	version string
	// data returns the patch with another resource version. JSON patches only replace a version that they have. If the
	// version is empty, the patch keeps its own.
	data func(version string) ([]byte, error)
	// shown are the fields in the patch of the case. Nil if they are not known.
	shown map[string]any
	// owners reports whether the patch changes owner references; allOwners and foreign are the result.
	owners             bool
	allOwners, foreign []metav1.OwnerReference
}

// hidePatch translates a patch for the cluster. The record is nil for an object that will be created.
func (c *caseClient) hidePatch(
	rec *record, namespace string, patchType types.PatchType, data []byte,
) (*hiddenPatch, error) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if patchType == types.JSONPatchType {
		return c.hideJSONPatch(rec, namespace, data)
	}
	patch := &hiddenPatch{data: func(string) ([]byte, error) { return data, nil }}
	if asJSON, err := yaml.YAMLToJSON(data); err != nil || utiljson.Unmarshal(asJSON, &patch.shown) != nil {
		// the server reports what is wrong
		return patch, nil
	}
	hidden := runtime.DeepCopyJSON(patch.shown)
	metadata, ok := hidden["metadata"].(map[string]any)
	if !ok && hidden["metadata"] != nil {
		return patch, nil // likewise
	}
	if !ok {
		metadata = map[string]any{}
	}
	if rec != nil {
		if uid, ok := metadata["uid"].(string); ok && types.UID(uid) == rec.given.GetUID() {
			metadata["uid"] = string(rec.uid)
		}
		patch.version, _ = metadata["resourceVersion"].(string)
	}
	c.hidePatchedOwners(rec, namespace, patchType, metadata, patch)
	patch.data = func(version string) ([]byte, error) {
		if version != "" {
			metadata["resourceVersion"] = version
			hidden["metadata"] = metadata
		}
		return json.Marshal(hidden)
	}
	return patch, nil
}

const (
	ownersField = "ownerReferences"
	// orderField and directiveField are fields of strategic merge patches.
	orderField     = "$setElementOrder/" + ownersField
	directiveField = "$patch"
)

// hidePatchedOwners translates the owner references in the metadata of a patch.
func (a *API) hidePatchedOwners(
	rec *record, namespace string, patchType types.PatchType, metadata map[string]any, patch *hiddenPatch,
) {
	value, ok := metadata[ownersField]
	if !ok {
		return
	}
	patch.owners = true
	var before []metav1.OwnerReference
	if rec != nil && patchType != types.MergePatchType {
		// these patches merge owner references by UID
		before = rec.owners
	}
	patch.allOwners = slices.Clone(before)
	find := func(uid types.UID) int {
		return slices.IndexFunc(patch.allOwners, func(ref metav1.OwnerReference) bool { return ref.UID == uid })
	}
	items, _ := value.([]any)
	kept := []any{}
	for _, item := range items {
		fields, ok := item.(map[string]any)
		if !ok {
			kept = append(kept, item)
			continue
		}
		ref := metav1.OwnerReference{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &ref) != nil {
			kept = append(kept, item)
			continue
		}
		i := find(ref.UID)
		isDelete := fields[directiveField] == "delete"
		switch {
		case isDelete && i < 0:
			continue
		case isDelete:
			ref = patch.allOwners[i]
			patch.allOwners = slices.Delete(patch.allOwners, i, i+1)
		case i < 0 || patchType == types.MergePatchType:
			patch.allOwners = append(patch.allOwners, ref)
		default:
			patch.allOwners[i] = ref
		}
		if owner := a.owner(ref, namespace); owner != nil {
			fields["uid"] = string(owner.uid)
			kept = append(kept, fields)
		}
	}
	if items != nil {
		metadata[ownersField] = kept
	}
	_, patch.foreign = a.realOwners(patch.allOwners, namespace)
	if order, ok := metadata[orderField].([]any); ok {
		metadata[orderField] = a.hideOrder(order, slices.Concat(before, patch.allOwners), namespace)
	}
}

// hideOrder translates the order of owner references in a strategic merge patch.
func (a *API) hideOrder(order []any, refs []metav1.OwnerReference, namespace string) []any {
	kept := []any{}
	for _, item := range order {
		fields, _ := item.(map[string]any)
		uid, _ := fields["uid"].(string)
		i := slices.IndexFunc(refs, func(ref metav1.OwnerReference) bool { return ref.UID == types.UID(uid) })
		if i < 0 {
			kept = append(kept, item)
		} else if owner := a.owner(refs[i], namespace); owner != nil {
			kept = append(kept, map[string]any{"uid": string(owner.uid)})
		}
	}
	return kept
}

// hideJSONPatch translates a JSON patch. In values it only translates owner references.
func (a *API) hideJSONPatch(rec *record, namespace string, data []byte) (*hiddenPatch, error) {
	patch := &hiddenPatch{data: func(string) ([]byte, error) { return data, nil }}
	operations := operationsOf(data)
	if operations == nil {
		return patch, nil
	}
	var versioned []map[string]any
	for i, operation := range operations {
		path, _ := operation["path"].(string)
		value, isText := operation["value"].(string)
		switch {
		case path == "/metadata/resourceVersion" && isText:
			patch.version = value
			versioned = append(versioned, operation)
		case path == "/metadata/uid" && isText && types.UID(value) == rec.given.GetUID():
			operation["value"] = string(rec.uid)
		case path == "/metadata/"+ownersField || strings.HasPrefix(path, "/metadata/"+ownersField+"/"):
			patch.owners = true
			if !a.hideOwnersIn(operation, namespace) || len(rec.foreign) > 0 {
				return nil, fmt.Errorf("operation %d of the JSON patch of %s changes owner references to "+
					"objects that the case does not have, which a cluster cannot store", i, rec.id)
			}
		}
	}
	patch.data = func(version string) ([]byte, error) {
		for _, operation := range versioned {
			operation["value"] = version
		}
		return json.Marshal(operations)
	}
	return patch, nil
}

// operationsOf returns the operations of a JSON patch, or nil if it is invalid, which the server reports.
func operationsOf(data []byte) []map[string]any {
	var operations []map[string]any
	if utiljson.Unmarshal(data, &operations) != nil {
		return nil
	}
	return operations
}

// hideOwnersIn translates the owner references in the value of an operation. It reports whether the case has all
// owners.
func (a *API) hideOwnersIn(operation map[string]any, namespace string) bool {
	switch value := operation["value"].(type) {
	case string:
		operation["value"] = string(a.realUID(types.UID(value)))
		return true
	case map[string]any:
		return a.hideOwnerIn(value, namespace)
	case []any:
		for _, item := range value {
			if fields, ok := item.(map[string]any); ok && !a.hideOwnerIn(fields, namespace) {
				return false
			}
		}
	}
	return true
}

func (a *API) hideOwnerIn(fields map[string]any, namespace string) bool {
	ref := metav1.OwnerReference{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &ref) != nil {
		return true // the server says what is wrong with it
	}
	owner := a.owner(ref, namespace)
	if owner != nil {
		fields["uid"] = string(owner.uid)
	}
	return owner != nil
}
