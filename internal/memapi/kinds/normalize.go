// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"encoding/json"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Normalize changes an object to the form it has after encoding and decoding: times in seconds, canonical quantities,
// nil instead of empty values that are omitted, int64 or float64 as numbers of unstructured content. It writes only to
// values that change, so it can be called for an object that shares content with a stored one.
//
// The encoding is protobuf for built-in kinds and JSON for others. The visible difference is that protobuf decodes
// empty lists and maps that are not omitted to nil. Keys in raw JSON are sorted, as a server encodes it. Strings are
// assumed to be valid UTF-8.
func (k *Kind) Normalize(obj client.Object) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		normalizeContent(u)
		return
	}
	v := reflect.ValueOf(obj).Elem()
	planFor(wireType{Type: v.Type(), protobuf: k.protobuf, object: true}).apply(v)
}

// NormalizeDecoded is Normalize for an object that was decoded from JSON, sent by an untyped client or a patch. Until
// it is stored, a server distinguishes empty from absent data of secrets and binary data of config maps.
func (k *Kind) NormalizeDecoded(obj client.Object) {
	switch o := obj.(type) {
	case *corev1.ConfigMap:
		data := o.BinaryData
		k.Normalize(o)
		keep(&o.BinaryData, data)
	case *corev1.Secret:
		data := o.Data
		k.Normalize(o)
		keep(&o.Data, data)
	default:
		k.Normalize(obj)
	}
}

func keep(data *map[string][]byte, before map[string][]byte) {
	if *data == nil {
		*data = before
	}
}

// Store removes the empty data that NormalizeDecoded has kept.
func (k *Kind) Store(obj client.Object) {
	switch o := obj.(type) {
	case *corev1.ConfigMap:
		dropEmpty(&o.BinaryData)
	case *corev1.Secret:
		dropEmpty(&o.Data)
	}
}

func dropEmpty(data *map[string][]byte) {
	if len(*data) == 0 {
		*data = nil
	}
}

// normalizeContent encodes content as JSON and decodes it, unless it consists of decoded values.
func normalizeContent(u *unstructured.Unstructured) {
	if isDecoded(u.Object) {
		return
	}
	data, err := json.Marshal(u.Object)
	if err != nil {
		return
	}
	var content map[string]any
	if utiljson.Unmarshal(data, &content) == nil {
		u.Object = content
	}
}

// isDecoded reports whether a value can be the result of decoding JSON. Whole numbers are never floats.
func isDecoded(value any) bool {
	switch v := value.(type) {
	case nil, string, bool, int64:
		return true
	case map[string]any:
		for _, entry := range v {
			if !isDecoded(entry) {
				return false
			}
		}
		return v != nil
	case []any:
		for _, entry := range v {
			if !isDecoded(entry) {
				return false
			}
		}
		return v != nil
	case float64:
		return v != float64(int64(v))
	}
	return false
}
