// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "k8s.io/apimachinery/pkg/runtime/serializer/json"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

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
