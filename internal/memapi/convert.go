// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "k8s.io/apimachinery/pkg/runtime/serializer/json"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// isGeneric reports whether the kind of an object is part of its content rather than determined by its Go type.
func isGeneric(obj runtime.Object) bool {
	switch obj.(type) {
	case runtime.Unstructured, *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return true
	default:
		return false
	}
}

// decode returns the object that a server would decode from what a client sends: a copy, of the stored type, with
// defaults.
func (t *table) decode(obj client.Object) (client.Object, error) {
	u, isUnstructured := obj.(*unstructured.Unstructured)
	var decoded client.Object
	switch {
	case isUnstructured:
		content := u.DeepCopy().Object
		content["apiVersion"], content["kind"] = t.kind.GroupVersion().String(), t.kind.Kind
		return t.decodeContent(content)
	case t.goType == nil:
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			return nil, err
		}
		decoded = &unstructured.Unstructured{Object: content}
	case reflect.TypeOf(obj) != reflect.PointerTo(t.goType):
		return nil, fmt.Errorf("%T is not the type of %s in the scheme", obj, t.kind.GroupVersionKind)
	default:
		decoded = obj.DeepCopyObject().(client.Object)
		decoded.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	t.kind.Normalize(decoded)
	return decoded, t.kind.Default(decoded)
}

// decodeContent decodes an object from maps and lists, which become part of the result.
func (t *table) decodeContent(content map[string]any) (client.Object, error) {
	if t.kind.Custom {
		obj := &unstructured.Unstructured{Object: content}
		t.kind.Normalize(obj)
		return obj, t.kind.Default(obj)
	}
	obj, err := t.parse(content)
	if err != nil {
		return nil, err
	}
	t.kind.NormalizeDecoded(obj)
	return obj, t.kind.Default(obj)
}

// unfit reports whether an object does not have the type in which its kind is stored. Custom objects that were sent as
// content remain content until they are validated: content can lack fields that a Go type always has, or have values
// that the Go type cannot hold, and the schema must report these.
func (t *table) unfit(obj client.Object) bool {
	_, ok := obj.(*unstructured.Unstructured)
	return ok && t.goType != nil
}

// hasStatus reports whether a custom object that a request writes, and that is stored in a Go type, has a status on the
// wire. Apply configurations are not sent in the Go type: if the status is empty, it may be absent.
func (t *table) hasStatus(obj client.Object, req request) bool {
	if !t.kind.Custom || t.goType == nil {
		return false
	}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		_, found := u.Object["status"]
		return found
	}
	field, found := t.goType.FieldByName("Status")
	if !found {
		return false
	}
	status := reflect.ValueOf(obj).Elem().FieldByIndex(field.Index)
	if !req.applied && status.Kind() == reflect.Struct && !strings.Contains(field.Tag.Get("json"), ",omitzero") {
		return true
	}
	return !status.IsZero()
}

// fit converts a validated object to the type in which it is stored.
func (t *table) fit(obj client.Object) (client.Object, error) {
	if !t.unfit(obj) {
		t.kind.Store(obj)
		return obj, nil
	}
	obj, err := t.parse(obj.(*unstructured.Unstructured).Object)
	if err == nil {
		t.kind.Normalize(obj)
	}
	return obj, err
}

// parse converts an object from maps and lists to the type in which it is stored.
func (t *table) parse(content map[string]any) (client.Object, error) {
	if t.goType == nil {
		return &unstructured.Unstructured{Object: content}, nil
	}
	obj := t.empty()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, obj); err != nil {
		return nil, apierrors.NewBadRequest(
			fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", t.kind.Kind, t.kind.Version, t.kind.Kind, err),
		)
	}
	obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return obj, nil
}

// empty returns a new object of the stored type.
func (t *table) empty() client.Object {
	if t.goType == nil {
		return newUnstructured(t.kind.GroupVersionKind)
	}
	return reflect.New(t.goType).Interface().(client.Object)
}

func newUnstructured(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(gvk)
	return obj
}

// contentOf returns a stored object as maps and lists, which must not be changed.
func contentOf(obj client.Object, gvk schema.GroupVersionKind, custom bool) map[string]any {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u.Object
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		panic(fmt.Sprintf("convert a stored %s: %v", gvk, err)) // cannot fail, because it was decoded
	}
	content["apiVersion"], content["kind"] = gvk.GroupVersion().String(), gvk.Kind
	if status, ok := content["status"].(map[string]any); ok && len(status) == 0 && custom {
		delete(content, "status") // a struct field cannot be absent in Go
	}
	if metadata := content["metadata"].(map[string]any); metadata["creationTimestamp"] == nil {
		delete(metadata, "creationTimestamp")
	}
	if gvk == statefulSetKind {
		nameClaims(content)
	}
	return content
}

var (
	statefulSetKind = appsv1.SchemeGroupVersion.WithKind("StatefulSet")
	claimKind       = corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim")
)

// nameClaims sets kind and API version in the volume claim templates of a stateful set. Typed objects lose them.
func nameClaims(content map[string]any) {
	claims, _, _ := unstructured.NestedFieldNoCopy(content, "spec", "volumeClaimTemplates")
	items, _ := claims.([]any)
	for _, item := range items {
		claim := item.(map[string]any)
		claim["apiVersion"], claim["kind"] = claimKind.Version, claimKind.Kind
	}
}

func (t *table) contentOf(obj client.Object) map[string]any {
	return contentOf(obj, t.kind.GroupVersionKind, t.kind.Custom)
}

// contents returns the object as maps and lists, which are cached in the record.
func (r *record) contents(t *table) map[string]any {
	if r.content == nil {
		r.content = t.contentOf(r.object)
		if t.goType != nil && t.kind.Custom {
			if _, found := r.content["status"]; !r.status {
				delete(r.content, "status") // also if the Go type writes null for fields that are not set
			} else if !found {
				r.content["status"] = map[string]any{}
			}
		}
	}
	return r.content
}

// encode returns a stored object as JSON.
func (r *record) encode(t *table) ([]byte, error) {
	return json.Marshal(r.contents(t))
}

// respond copies a stored object into the object of the caller. Like with the clients of controller-runtime, typed
// objects have no kind.
func (t *table) respond(r *record, obj client.Object) error {
	stored := r.object
	switch obj := obj.(type) {
	case *unstructured.Unstructured:
		obj.Object = runtime.DeepCopyJSON(r.contents(t))
		return nil
	case *metav1.PartialObjectMetadata:
		*obj = metav1.PartialObjectMetadata{ObjectMeta: metadataOf(stored)}
		obj.SetGroupVersionKind(t.kind.GroupVersionKind)
		return nil
	}
	if u, ok := stored.(*unstructured.Unstructured); ok {
		reflect.ValueOf(obj).Elem().SetZero()
		return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, obj)
	}
	if reflect.TypeOf(obj) != reflect.PointerTo(t.goType) {
		return fmt.Errorf("%T is not the type of %s in the scheme", obj, t.kind.GroupVersionKind)
	}
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(stored.DeepCopyObject()).Elem())
	return nil
}

// metadataOf returns a copy of the metadata of an object.
func metadataOf(obj client.Object) metav1.ObjectMeta {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		var partial metav1.PartialObjectMetadata
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(
			map[string]any{"metadata": u.Object["metadata"]}, &partial,
		); err == nil {
			return *partial.ObjectMeta.DeepCopy()
		}
	}
	if m := metadataPointer(obj); m != nil {
		return *m.DeepCopy()
	}
	return metav1.ObjectMeta{}
}

// shallowCopy returns a copy of an object whose metadata can be replaced field by field.
func shallowCopy(obj client.Object) client.Object {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		content := maps.Clone(u.Object)
		if metadata, ok := content["metadata"].(map[string]any); ok {
			content["metadata"] = maps.Clone(metadata)
		}
		return &unstructured.Unstructured{Object: content}
	}
	copied := reflect.New(reflect.TypeOf(obj).Elem())
	copied.Elem().Set(reflect.ValueOf(obj).Elem())
	return copied.Interface().(client.Object)
}

// DecodeForeign returns the error of a server that decodes an object of another kind than the built-in one that it
// expects: decode and convert in k8s.io/apimachinery/pkg/runtime/serializer/versioning/versioning.go.
func DecodeForeign(data []byte, found, expected schema.GroupVersionKind) error {
	if _, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(data, &found, nil); err != nil {
		return err
	}
	return fmt.Errorf("converting (%s.%s) to (%s.%s): unknown conversion",
		found.Version, found.Kind, internalPackage(expected.Group), expected.Kind)
}

// internalPackage returns the name of the package with the internal types of a group.
func internalPackage(group string) string {
	if group == "" {
		return "core"
	}
	name, _, _ := strings.Cut(group, ".")
	return name
}

// matchKind refuses the content of an object that a JSON or merge patch has given another kind, like the decoder of a
// server: applyPatchToCurrentObject in k8s.io/apiserver/pkg/endpoints/handlers/patch.go. Custom content of another kind
// can be decoded; its validation fails.
func (t *table) matchKind(key client.ObjectKey, content map[string]any) error {
	return matchKind(t.kind.GroupVersionKind, t.kind.Custom, key, content)
}

func matchKind(expected schema.GroupVersionKind, custom bool, key client.ObjectKey, content map[string]any) error {
	version := expected.GroupVersion().String()
	if content["kind"] == expected.Kind && content["apiVersion"] == version {
		return nil
	}
	text, err := json.Marshal(content)
	if err != nil {
		return err
	}
	if custom {
		if _, _, err := unstructured.UnstructuredJSONScheme.Decode(text, nil, nil); err != nil {
			return invalidPatch(text, err)
		}
		if found, _ := content["apiVersion"].(string); found == "" {
			return apierrors.NewInternalError(runtime.NewMissingVersionErr("object has no apiVersion field"))
		}
		return nil
	}
	found, err := kjson.DefaultMetaFactory.Interpret(text)
	switch {
	case err != nil:
		return invalidPatch(text, err)
	case found.Kind == "", found.Kind == expected.Kind:
		if found.Version == "" { // it is decoded as the internal version, whose fields have other names
			return matchName(key, &unstructured.Unstructured{})
		}
		found.Kind = expected.Kind
	}
	if *found == expected {
		return nil
	}
	return invalidPatch(text, DecodeForeign(text, *found, expected))
}
