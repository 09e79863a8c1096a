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
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kjson "sigs.k8s.io/json"
)

// patch patches an object. It does not handle apply. The steps in the closure are the steps of handlers/patch.go
// applyPatchToCurrentObject, and then applyPatch, which compares namespace and name. The managed fields come first
// there, but depend on neither.
func (s *Server) patch(
	t *table, key client.ObjectKey, kind types.PatchType, data []byte, req request,
) (*record, error) {
	req.patchedKind = &schema.GroupVersionKind{}
	return s.update(t, key, "", req, func(r *record) (client.Object, error) {
		content, err := t.patched(r, kind, data)
		if err != nil {
			return nil, err
		}
		// The result of a strategic merge patch is not decoded but converted to the type of the kind: strategicPatchObject
		// in k8s.io/apiserver/pkg/endpoints/handlers/patch.go.
		if kind != types.StrategicMergePatchType {
			if err := t.matchKind(key, content); err != nil {
				return nil, err
			}
		}
		if found := t.setKind(content); t.kind.Custom {
			*req.patchedKind = found
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

// setKind sets the kind of the content of an object, and returns the one that it had.
func (t *table) setKind(content map[string]any) schema.GroupVersionKind {
	found := (&unstructured.Unstructured{Object: content}).GroupVersionKind()
	content["apiVersion"], content["kind"] = t.kind.GroupVersion().String(), t.kind.Kind
	return found
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
	if !json.Valid(data) {
		return nil, apierrors.NewBadRequest("invalid JSON patch")
	}
	switch kind {
	case types.JSONPatchType:
		return t.jsonPatched(r, data)
	case types.MergePatchType:
		return t.mergePatched(r, data)
	default:
		return t.strategicPatched(r, data)
	}
}

// checkPatchType refuses types of patches that the kind does not support.
func (t *table) checkPatchType(kind types.PatchType) error {
	switch kind {
	case types.JSONPatchType, types.MergePatchType, types.ApplyYAMLPatchType:
		return nil
	case types.StrategicMergePatchType:
		if !t.kind.Custom && t.goType != nil {
			return nil
		}
	}
	return t.unsupportedPatch()
}

// unsupportedPatch is the error about a type of patch. The handler of custom kinds checks the type itself:
// PatchResource in k8s.io/apiserver/pkg/endpoints/handlers/patch.go. For built-in kinds, the router does: the routes
// that registerResourceHandlers in k8s.io/apiserver/pkg/endpoints/installer.go adds list what they consume.
func (t *table) unsupportedPatch() error {
	if t.kind.Custom {
		return asStatus(negotiation.NewUnsupportedMediaTypeError([]string{
			string(types.JSONPatchType), string(types.MergePatchType), string(types.ApplyYAMLPatchType),
		}))
	}
	return apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, "", schema.GroupResource{}, "",
		"415: Unsupported Media Type", 0, false)
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
		return nil, invalidPatch(text, err)
	}
	return obj, err
}

// invalidPatch is the error about an object that cannot be decoded after a patch.
func invalidPatch(patched []byte, err error) error {
	return apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{
		field.Invalid(field.NewPath("patch"), string(patched), err.Error()),
	})
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
		return nil, t.unsupportedPatch()
	}
	if found := patch.GroupVersionKind(); found != t.kind.GroupVersionKind {
		// versionCheckManager in k8s.io/apimachinery/pkg/util/managedfields/internal/versioncheck.go
		return nil, apierrors.NewBadRequest(fmt.Sprintf("invalid object type: %v", found))
	}
	// handlers/patch.go patchResource: an apply sets forceAllowCreate. Therefore createNewObject of applyPatcher is called
	// for an object that does not exist
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
