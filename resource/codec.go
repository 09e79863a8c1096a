// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// KindEncoding is an encoding of objects.
type KindEncoding string

const (
	// KindEncodingJSON is the encoding that clients, caches and webhooks use.
	KindEncodingJSON KindEncoding = "application/json"
	// KindEncodingYAML is an encoding that only your own code uses.
	KindEncodingYAML KindEncoding = "application/yaml"
	// KindEncodingUnknown is not an encoding.
	KindEncodingUnknown KindEncoding = ""
)

// Codec reads and writes objects of a kind, see [Kind.Codecs].
type Codec interface {
	// Read decodes an object.
	Read(from io.Reader, into Object) error
	// Write encodes an object.
	Write(to io.Writer, object Object) error
}

// JSONCodec is a [Codec] that uses encoding/json, as clients, caches and webhooks do.
type JSONCodec struct{}

// NewJSONCodec returns a codec.
func NewJSONCodec() *JSONCodec { return &JSONCodec{} }

// Read implements Codec.
func (JSONCodec) Read(from io.Reader, into Object) error { return json.NewDecoder(from).Decode(into) }

// Write implements Codec.
func (JSONCodec) Write(to io.Writer, object Object) error { return json.NewEncoder(to).Encode(object) }

// Codec returns the codec for an encoding, or nil if the kind has none.
func (k Kind) Codec(encoding KindEncoding) Codec { return k.Codecs[encoding] }

// Read decodes an object with the codec for the encoding.
func (k Kind) Read(from io.Reader, encoding KindEncoding) (Object, error) {
	codec := k.Codec(encoding)
	if codec == nil {
		return nil, fmt.Errorf("kind %s has no codec for %q", k, encoding)
	}
	into := k.ZeroValue()
	if err := codec.Read(from, into); err != nil {
		return nil, err
	}
	return into, nil
}

// Write encodes an object with the codec for the encoding.
func (k Kind) Write(object Object, to io.Writer, encoding KindEncoding) error {
	codec := k.Codec(encoding)
	if codec == nil {
		return fmt.Errorf("kind %s has no codec for %q", k, encoding)
	}
	return codec.Write(to, object)
}

// validateCodec returns an error if the codec for JSON differs from encoding/json, for an object without values and for
// one with a value in each field. Clients would ignore what the codec does.
func (k Kind) validateCodec() error {
	codec := k.Codec(KindEncodingJSON)
	if codec == nil {
		return nil
	}
	filled := k.ZeroValue()
	fill(reflect.ValueOf(filled).Elem(), nil)
	for _, object := range []Object{k.ZeroValue(), filled} {
		if err := sameAsJSON(codec, object, k.ZeroValue()); err != nil {
			return fmt.Errorf(
				"kind %s has a codec that clients, caches and webhooks do not use, and it differs from encoding/json (%w): "+
					"define MarshalJSON and UnmarshalJSON for the Go types instead", k, err,
			)
		}
	}
	return nil
}

func sameAsJSON(codec Codec, object, decoded Object) error {
	want, err := json.Marshal(object)
	if err != nil {
		return nil //nolint:nilerr // There is nothing to compare: a made-up value may not be valid.
	}
	var got bytes.Buffer
	if err := codec.Write(&got, object); err != nil {
		return fmt.Errorf("it cannot write what encoding/json writes: %w", err)
	}
	if !equalJSON(got.Bytes(), want) {
		return fmt.Errorf("it writes %s instead of %s", bytes.TrimSpace(got.Bytes()), want)
	}
	reference := decoded.DeepCopyObject()
	if err := json.Unmarshal(want, reference); err != nil {
		return nil //nolint:nilerr // as above
	}
	if err := codec.Read(bytes.NewReader(want), decoded); err != nil {
		return fmt.Errorf("it cannot read %s: %w", want, err)
	}
	if !reflect.DeepEqual(decoded, reference) {
		return fmt.Errorf("it reads %s as %+v", want, decoded)
	}
	return nil
}

func equalJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// fill sets the fields of a value to values that are not empty. It leaves out types that encode themselves, because
// their values may have to follow rules, and types that contain themselves, below a value of that type. within are the
// structs that contain v.
func fill(v reflect.Value, within []reflect.Type) {
	switch v.Addr().Interface().(type) {
	case json.Marshaler, encoding.TextMarshaler, *metav1.TypeMeta, *metav1.ObjectMeta:
		return
	}
	if slices.Contains(within, v.Type()) {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), within)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), within)
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), within)
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, within)
		fill(value, within)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		within = append(slices.Clone(within), v.Type())
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i), within)
			}
		}
	}
}
