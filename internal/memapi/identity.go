// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// nameAlphabet has the characters of generated names: no vowels, and no digits that look like vowels.
const nameAlphabet = "bcdfghjklmnpqrstvwxz2456789"

const (
	generatedLength = 5
	// maxNamePrefix is the longest prefix of a generated name that is a valid label value.
	maxNamePrefix = 63 - generatedLength
)

// generateName returns another name for each call. The names depend on the seed and the prefix.
func (s *Server) generateName(prefix string) string {
	if s.generated == nil {
		s.generated = map[string]uint64{}
	}
	s.generated[prefix]++
	h := mix(hash(s.seed, prefix) + s.generated[prefix])
	if len(prefix) > maxNamePrefix {
		prefix = prefix[:maxNamePrefix]
	}
	var suffix [generatedLength]byte
	for i := range suffix {
		suffix[i] = nameAlphabet[h%uint64(len(nameAlphabet))]
		h /= uint64(len(nameAlphabet))
	}
	return prefix + string(suffix[:])
}

// newUID returns the UID of the next object with a key. It depends only on the seed, the key, and the number of earlier
// objects with that key.
func (s *Server) newUID(t *table, key client.ObjectKey) types.UID {
	h := hash(hash(hash(hash(s.seed, t.kind.Group), t.kind.Kind), key.Namespace), key.Name) + t.lives[key]
	a, b := mix(h), mix(h^0x9e3779b97f4a7c15)
	var text [36]byte
	hex(text[0:8], a>>32)
	text[8] = '-'
	hex(text[9:13], a>>16)
	text[13] = '-'
	hex(text[14:18], a&0xfff|0x4000) // version 4: random
	text[18] = '-'
	hex(text[19:23], b>>48&0x3fff|0x8000) // the variant of RFC 9562
	text[23] = '-'
	hex(text[24:36], b)
	return types.UID(text[:])
}

// hex fills text with the lowest digits of a number.
func hex(text []byte, number uint64) {
	for i := len(text) - 1; i >= 0; i-- {
		text[i] = "0123456789abcdef"[number&0xf]
		number >>= 4
	}
}

// hash is FNV-1a with another start value and an end mark after the text.
func hash(start uint64, text string) uint64 {
	const prime = 0x100000001b3
	h := mix(start ^ 0xcbf29ce484222325)
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * prime
	}
	return (h ^ 0xff) * prime
}

// mix distributes a number over all bits, like splitmix64.
func mix(h uint64) uint64 {
	h += 0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// same reports whether two objects of a type are equal on the wire. Semantic equality is slow, so it is checked only
// for fields that differ in Go, for example times in different locations.
func same(a, b client.Object) bool {
	x, y := reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem()
	for i := range x.NumField() {
		if f, g := x.Field(i).Addr().Interface(), y.Field(i).Addr().Interface(); !reflect.DeepEqual(f, g) &&
			!equality.Semantic.DeepEqual(f, g) {
			return false
		}
	}
	return true
}

// sameMetadata reports whether two objects have equal metadata, except for what a server counts itself. If it returns
// false, they may still be equal.
func sameMetadata(a, b client.Object) bool {
	x, y := metadataPointer(a), metadataPointer(b)
	if x == nil || y == nil {
		return false
	}
	m := *x
	m.Generation, m.ManagedFields = y.Generation, y.ManagedFields
	return reflect.DeepEqual(&m, y)
}

// metadataPointer returns the metadata of a typed object.
func metadataPointer(obj client.Object) *metav1.ObjectMeta {
	if accessor, ok := obj.(metav1.ObjectMetaAccessor); ok {
		m, _ := accessor.GetObjectMeta().(*metav1.ObjectMeta)
		return m
	}
	return nil
}
