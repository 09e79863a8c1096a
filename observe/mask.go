// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// identity are the fields of metadata that are never masked: they say which object it is, and what happens to it.
var identity = []string{
	"name", "generateName", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
	"deletionGracePeriodSeconds", "ownerReferences", "finalizers",
}

// Encode returns an object as JSON with masked values. Fields, keys and the number of items are kept: a masked text
// becomes "masked" with six digits, which are the same for equal texts until the process ends, a number becomes 0, and
// a boolean becomes false. Such a text is also valid as base64. Names, owners, finalizers and versions are kept. Of
// Secrets, data and annotations are masked, and all else is kept. Managed fields and the annotation in which kubectl
// keeps a copy of the object are removed.
func (m Mask) Encode(kind schema.GroupVersionKind, obj client.Object) ([]byte, error) {
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("encode %s %s: %w", kind.Kind, client.ObjectKeyFromObject(obj), err)
	}
	var content map[string]any
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&content); err != nil {
		return nil, fmt.Errorf("encode %s %s: %w", kind.Kind, client.ObjectKeyFromObject(obj), err)
	}
	content["apiVersion"], content["kind"] = kind.ToAPIVersionAndKind()
	metadata, _ := content["metadata"].(map[string]any)
	delete(metadata, "managedFields")
	if annotations, ok := metadata["annotations"].(map[string]any); ok {
		delete(annotations, corev1.LastAppliedConfigAnnotation)
	}
	masking := masking{m, isSecret(kind.GroupKind(), obj)}
	for field, value := range content {
		if field != "apiVersion" && field != "kind" && field != "metadata" {
			content[field] = masking.value([]string{field}, value)
		}
	}
	for field, value := range metadata {
		if !slices.Contains(identity, field) {
			metadata[field] = masking.value([]string{"metadata." + field}, value)
		}
	}
	return json.Marshal(content)
}

// masking replaces the hidden values of an object.
type masking struct {
	Mask
	secret bool // whether the object is a Secret
}

// value returns a value with masked leaves. It has several paths if it is below an item of a list, whose place in the
// path of a [Change] is its name or its index: one that is hidden is enough.
func (m masking) value(paths []string, value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			v[key] = m.value(below(paths, key), v[key])
		}
		return v
	case []any:
		for i := range v {
			v[i] = m.value(below(paths, itemNames(v[i], i)...), v[i])
		}
		return v
	}
	if !slices.ContainsFunc(paths, m.isHidden) {
		return value
	}
	switch v := value.(type) {
	case string:
		if v == "" {
			return v
		}
		return fmt.Sprintf("masked%06x", maphash.String(salt, v)&0xffffff)
	case bool:
		return false
	case json.Number:
		return 0
	}
	return value
}

func below(paths []string, names ...string) []string {
	all := make([]string, 0, len(paths)*len(names))
	for _, path := range paths {
		for _, name := range names {
			all = append(all, path+"."+name)
		}
	}
	return all
}

// salt keeps values from being guessed.
var salt = maphash.MakeSeed()

// isHidden reports whether the value at a path is masked. Labels and the type of a Secret are not secrets.
func (m masking) isHidden(path string) bool {
	if m.secret {
		for _, field := range []string{"data.", "stringData.", "metadata.annotations."} {
			if strings.HasPrefix(path, field) {
				return true
			}
		}
	}
	return m.hides(path)
}

// itemNames returns the index of an item of a list, and its name or type if it has one.
func itemNames(item any, index int) []string {
	names := []string{strconv.Itoa(index)}
	fields, _ := item.(map[string]any)
	for _, key := range []string{"name", "type"} {
		if name, ok := fields[key].(string); ok && name != "" {
			names = append(names, name)
		}
	}
	return names
}
