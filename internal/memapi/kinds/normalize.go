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

// Normalize makes an object what it is after a way over the wire: times have seconds, quantities are canonical, what is
// omitted when empty is nil, numbers of unstructured content are int64 or float64. It writes only where something
// changes, so that it can be called for an object that shares content with a stored one.
//
// The wire is protobuf for kinds of Kubernetes and JSON for others. The difference that shows: lists and maps that are
// empty but not omitted are nil for the former. Raw JSON has its keys sorted, as a server that has decoded it writes
// it. Text is taken for valid UTF-8.
func (k *Kind) Normalize(obj client.Object) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		normalizeContent(u)
		return
	}
	v := reflect.ValueOf(obj).Elem()
	planFor(wireType{Type: v.Type(), protobuf: k.protobuf, object: true}).apply(v)
}

// NormalizeDecoded is Normalize for an object that has been decoded from JSON: of an untyped client, or by a patch. A
// server takes the data of a secret, and the binary data of a config map, that is there and empty for another one than
// none, until it has stored it.
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

// Store drops what NormalizeDecoded has left.
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

// normalizeContent takes content through JSON unless it is what JSON is decoded to.
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

// isDecoded reports whether JSON is decoded to such a value. Whole numbers never are floats.
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
