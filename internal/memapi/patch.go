// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kjson "sigs.k8s.io/json"
)

// patch patches an object. It does not handle apply.
func (s *Server) patch(
	t *table, key client.ObjectKey, kind types.PatchType, data []byte, req request,
) (*record, error) {
	if kind == types.StrategicMergePatchType && (t.kind.Custom || t.goType == nil) {
		return nil, unsupportedPatch(t)
	}
	return s.update(t, key, "", req, func(r *record) (client.Object, error) {
		content, err := t.patched(r, kind, data)
		if err != nil {
			return nil, err
		}
		if err := s.checkPatched(t, content, data); err != nil {
			return nil, err
		}
		obj, err := t.decodePatched(content)
		if err != nil {
			return nil, err
		}
		if err := t.matchTarget(key, obj); err != nil {
			return nil, err
		}
		return s.manage(t, r, obj, req)
	})
}

// matchTarget refuses a patch that changes the identity of the object.
func (t *table) matchTarget(key client.ObjectKey, obj client.Object) error {
	if err := matchNamespace(t, key.Namespace, obj); err != nil {
		return err
	}
	dropDuplicateOwners(obj)
	return matchName(key, obj)
}

// patched returns the content of an object after a patch.
func (t *table) patched(r *record, kind types.PatchType, data []byte) (map[string]any, error) {
	known := kind == types.JSONPatchType || kind == types.MergePatchType || kind == types.StrategicMergePatchType
	if known && !json.Valid(data) {
		return nil, apierrors.NewBadRequest("invalid JSON patch")
	}
	switch kind {
	case types.JSONPatchType:
		return t.jsonPatched(r, data)
	case types.MergePatchType:
		return t.mergePatched(r, data)
	case types.StrategicMergePatchType:
		return t.strategicPatched(r, data)
	default:
		return nil, unsupportedPatch(t)
	}
}

func unsupportedPatch(t *table) error {
	accepted := "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
	if !t.kind.Custom {
		accepted =
			"application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json, " +
				"application/apply-patch+yaml"
	}
	err := apierrors.NewGenericServerResponse(
		http.StatusUnsupportedMediaType, "", schema.GroupResource{}, "", "", 0, false,
	)
	err.ErrStatus.Message = "the body of the request was in an unknown format - accepted media types include: " + accepted
	err.ErrStatus.Details = nil
	return err
}

// jsonPatchOp is an operation of a JSON patch.
type jsonPatchOp struct {
	Op    string `json:"op"`
	From  string `json:"from"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

func (t *table) jsonPatched(r *record, data []byte) (map[string]any, error) {
	if err := json.Unmarshal(data, &[]jsonPatchOp{}); err != nil {
		// The message has the name of the type that a server decodes into.
		return nil, apierrors.NewBadRequest(
			"error decoding patch: " + strings.ReplaceAll(err.Error(), "memapi.jsonPatchOp", "handlers.jsonPatchOp"),
		)
	}
	patch, err := jsonpatch.DecodePatch(data)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	before, err := r.encode(t)
	if err != nil {
		return nil, err
	}
	after, err := patch.Apply(before)
	if err != nil {
		return nil, apierrors.NewGenericServerResponse(
			http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false,
		)
	}
	return decodeContent(after)
}

// JSONPatched returns a JSON document after a JSON patch (RFC 6902).
func JSONPatched(document, data []byte) ([]byte, error) {
	patch, err := jsonpatch.DecodePatch(data)
	if err != nil {
		return nil, err
	}
	return patch.Apply(document)
}

func (t *table) mergePatched(r *record, data []byte) (map[string]any, error) {
	patch, err := decodeContent(data)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	return merge(r.contents(t), patch), nil
}

// merge returns a copy of the content after a JSON merge patch.
func merge(content, patch map[string]any) map[string]any {
	merged := make(map[string]any, len(content)+len(patch))
	for key, value := range content {
		if _, changed := patch[key]; !changed {
			merged[key] = runtime.DeepCopyJSONValue(value)
		}
	}
	for key, change := range patch {
		switch change := change.(type) {
		case nil:
		case map[string]any:
			inner, _ := content[key].(map[string]any)
			merged[key] = merge(inner, change)
		default:
			merged[key] = change
		}
	}
	return merged
}

// badPatches are the errors about invalid strategic merge patches.
var badPatches = []error{
	mergepatch.ErrBadJSONDoc, mergepatch.ErrBadPatchFormatForPrimitiveList, mergepatch.ErrBadPatchFormatForRetainKeys,
	mergepatch.ErrBadPatchFormatForSetElementOrderList, mergepatch.ErrUnsupportedStrategicMergePatchFormat,
}

func (t *table) strategicPatched(r *record, data []byte) (map[string]any, error) {
	patch := map[string]any{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &patch); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	content := runtime.DeepCopyJSON(r.contents(t))
	patched, err := strategicpatch.StrategicMergeMapPatch(content, patch, t.empty())
	is := func(target error) bool { return errors.Is(err, target) }
	switch {
	case err == nil:
		return patched, nil
	case slices.ContainsFunc(badPatches, is):
		return nil, apierrors.NewBadRequest(err.Error())
	case is(mergepatch.ErrNoListOfLists), mergepatch.IsPreconditionFailed(err):
		return nil, apierrors.NewGenericServerResponse(
			http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false,
		)
	default:
		return nil, internal(err)
	}
}

// decodePatched is decodeContent with the errors of patches.
func (t *table) decodePatched(content map[string]any) (client.Object, error) {
	obj, err := t.decodeContent(content)
	if apierrors.IsBadRequest(err) {
		text, _ := json.Marshal(content)
		return nil, apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{
			field.Invalid(field.NewPath("patch"), string(text), err.Error()),
		})
	}
	return obj, err
}

func decodeContent(data []byte) (map[string]any, error) {
	content := map[string]any{}
	return content, kjson.UnmarshalCaseSensitivePreserveInts(data, &content)
}

// apply applies a configuration. It creates the object if it does not exist.
func (s *Server) apply(
	t *table, key client.ObjectKey, patch *unstructured.Unstructured, force bool, req request,
) (*record, error) {
	if s.applier == nil {
		return nil, unsupportedPatch(t)
	}
	req.managed, req.applied = true, true
	r := t.objects[key]
	if r == nil {
		if req.subresource != "" && !t.kind.CreateOnUpdate {
			return nil, t.notFound(key.Name)
		}
		obj, err := s.applied(t, nil, patch, force, req)
		if err != nil {
			return nil, err
		}
		if uid := obj.GetUID(); uid != "" {
			return nil, apierrors.NewConflict(
				t.resource, key.Name,
				fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", uid),
			)
		}
		if err := t.matchTarget(key, obj); err != nil {
			return nil, err
		}
		return s.createByUpdate(t, key.Namespace, obj, req)
	}
	return s.update(t, key, "", req, func(r *record) (client.Object, error) {
		obj, err := s.applied(t, r.onWire(t), patch, force, req)
		if err != nil {
			return nil, err
		}
		return obj, t.matchTarget(key, obj)
	})
}

func (s *Server) applied(
	t *table, live client.Object, patch *unstructured.Unstructured, force bool, req request,
) (client.Object, error) {
	obj, err := t.fromApplier(s.applier.Apply(
		live, patch, req.manager, force, req.subresource, s.now(), s.converter(t),
	))
	if err != nil {
		return nil, err
	}
	return obj, t.kind.DefaultApplied(obj)
}

// tidy changes the result of an apply to what a server reads back after it has stored it. It returns the metadata that
// is lost: custom objects are stored with empty maps and lists, but read without them.
func (t *table) tidy(obj client.Object) (lost map[string]any) {
	if t.kind.Custom {
		lost = dropEmptyMetadata(obj)
	}
	t.kind.NormalizeDecoded(obj)
	return lost
}

func dropEmptyMetadata(obj client.Object) map[string]any {
	dropped := map[string]any{}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		metadata, _ := u.Object["metadata"].(map[string]any)
		if metadata["namespace"] == "" {
			delete(metadata, "namespace") // which is not stored
		}
		for _, name := range []string{"labels", "annotations", "ownerReferences", "finalizers"} {
			if value, found := metadata[name]; found && (value == nil || reflect.ValueOf(value).Len() == 0) {
				delete(metadata, name)
				dropped[name] = value
			}
		}
		return dropped
	}
	if labels := obj.GetLabels(); labels != nil && len(labels) == 0 {
		obj.SetLabels(nil)
		dropped["labels"] = map[string]any{}
	}
	if annotations := obj.GetAnnotations(); annotations != nil && len(annotations) == 0 {
		obj.SetAnnotations(nil)
		dropped["annotations"] = map[string]any{}
	}
	if owners := obj.GetOwnerReferences(); owners != nil && len(owners) == 0 {
		obj.SetOwnerReferences(nil)
		dropped["ownerReferences"] = []any{}
	}
	if finalizers := obj.GetFinalizers(); finalizers != nil && len(finalizers) == 0 {
		obj.SetFinalizers(nil)
		dropped["finalizers"] = []any{}
	}
	return dropped
}
