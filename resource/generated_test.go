// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"trueup.dev/resource"
)

// Generated has the methods that Grafana App SDK generates: all copies are made by CopyObject and CopyObjectInto.
type (
	Generated struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`

		Spec GeneratedSpec `json:"spec"`
	}
	GeneratedSpec struct {
		Color string            `json:"color"`
		Tags  map[string]string `json:"tags,omitempty"`
		Sizes []*int64          `json:"sizes,omitempty"`
		Until *metav1.Time      `json:"until,omitempty"`
	}
	GeneratedList struct {
		metav1.TypeMeta `json:",inline"`
		metav1.ListMeta `json:"metadata"`

		Items []Generated `json:"items"`
	}
)

func (o *Generated) Copy() resource.Object          { return resource.CopyObject(o) }
func (o *Generated) DeepCopyObject() runtime.Object { return o.Copy() }
func (o *Generated) DeepCopyInto(out *Generated) {
	out.TypeMeta = o.TypeMeta
	o.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	o.Spec.DeepCopyInto(&out.Spec)
}
func (s *GeneratedSpec) DeepCopyInto(out *GeneratedSpec) { _ = resource.CopyObjectInto(out, s) }
func (l *GeneratedList) DeepCopyInto(out *GeneratedList) { _ = resource.CopyObjectInto(out, l) }
func (l *GeneratedList) DeepCopyObject() runtime.Object {
	out := &GeneratedList{}
	l.DeepCopyInto(out)
	return out
}

func newGenerated() *Generated {
	return &Generated{
		TypeMeta:   metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Generated"},
		ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"l": "1"}},
		Spec:       GeneratedSpec{Color: "red", Tags: map[string]string{"t": "1"}, Sizes: []*int64{new(int64(1))}},
	}
}

// The methods of a generated type call CopyObject, which must not call them again.
func TestCopyObject(t *testing.T) {
	original := newGenerated()
	list := &GeneratedList{Items: []Generated{*newGenerated()}}
	copies := map[string]*Generated{
		"CopyObject": resource.CopyObject(original).(*Generated),
		"of a list":  &list.DeepCopyObject().(*GeneratedList).Items[0],
	}
	for name, got := range copies {
		if diff := cmp.Diff(newGenerated(), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		got.Labels["l"], got.Spec.Tags["t"], *got.Spec.Sizes[0] = "2", "2", 2
	}
	for name, kept := range map[string]*Generated{"object": original, "item": &list.Items[0]} {
		if diff := cmp.Diff(newGenerated(), kept); diff != "" {
			t.Errorf("the copy shares memory with the %s (-want +got):\n%s", name, diff)
		}
	}
	if got := resource.CopyObject((*Generated)(nil)); got != nil {
		t.Errorf("CopyObject(nil) = %v", got)
	}
}

func TestCopyObjectInto_RefusesWhatItCannotCopy(t *testing.T) {
	number := 1
	for name, err := range map[string]error{
		"a nil source":      resource.CopyObjectInto(&GeneratedSpec{}, nil),
		"a nil target":      resource.CopyObjectInto(nil, &GeneratedSpec{}),
		"a struct":          resource.CopyObjectInto(GeneratedSpec{}, GeneratedSpec{}),
		"a number":          resource.CopyObjectInto(&number, &number),
		"two types":         resource.CopyObjectInto[any](&Generated{}, &GeneratedSpec{}),
		"interfaces of nil": resource.CopyObjectInto[any](nil, nil),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// upperCodec encodes colors in upper case.
type upperCodec struct {
	resource.JSONCodec

	read, write bool
}

func (c upperCodec) Write(to io.Writer, object resource.Object) error {
	generated := object.DeepCopyObject().(*Generated)
	if c.write {
		generated.Spec.Color = strings.ToUpper(generated.Spec.Color)
	}
	return c.JSONCodec.Write(to, generated)
}

func (c upperCodec) Read(from io.Reader, into resource.Object) error {
	err := c.JSONCodec.Read(from, into)
	if c.read {
		into.(*Generated).Spec.Color = strings.ToLower(into.(*Generated).Spec.Color) + "!"
	}
	return err
}

type brokenCodec struct{ resource.JSONCodec }

func (brokenCodec) Write(io.Writer, resource.Object) error { return errors.New("broken") }

// Clients do not use codecs. A codec that does something would be ignored in silence.
func TestKind_ValidateFindsCodecsThatClientsIgnore(t *testing.T) {
	for name, tc := range map[string]struct {
		encoding resource.KindEncoding
		codec    resource.Codec
		want     string
	}{
		"encoding/json":    {encoding: resource.KindEncodingJSON, codec: resource.NewJSONCodec()},
		"equal to it":      {encoding: resource.KindEncodingJSON, codec: upperCodec{}},
		"nil":              {encoding: resource.KindEncodingJSON},
		"another encoding": {encoding: resource.KindEncodingYAML, codec: brokenCodec{}},
		"writes otherwise": {
			encoding: resource.KindEncodingJSON, codec: upperCodec{write: true},
			want: `it writes {"kind":"Generated","apiVersion":"example.com/v1","metadata":{},"spec":{"color":"X",`,
		},
		"reads otherwise": {encoding: resource.KindEncodingJSON, codec: upperCodec{read: true}, want: "it reads "},
		"cannot write":    {encoding: resource.KindEncodingJSON, codec: brokenCodec{}, want: "cannot write"},
	} {
		t.Run(name, func(t *testing.T) {
			err := resource.Kind{
				Schema: resource.NewSimpleSchema("example.com", "v1", &Generated{}, &GeneratedList{}),
				Codecs: map[resource.KindEncoding]resource.Codec{tc.encoding: tc.codec},
			}.Validate()
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("Validate() = %v", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("Validate() = %v, want %q", err, tc.want)
			}
		})
	}
}

func TestKind_ReadAndWriteUseTheCodec(t *testing.T) {
	kind := resource.Kind{
		Schema: resource.NewSimpleSchema("example.com", "v1", &Generated{}, &GeneratedList{}),
		Codecs: map[resource.KindEncoding]resource.Codec{resource.KindEncodingJSON: resource.NewJSONCodec()},
	}
	var buffer bytes.Buffer
	if err := kind.Write(newGenerated(), &buffer, resource.KindEncodingJSON); err != nil {
		t.Fatal(err)
	}
	got, err := kind.Read(&buffer, resource.KindEncodingJSON)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(resource.Object(newGenerated()), got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, err := kind.Read(&buffer, resource.KindEncodingYAML); err == nil {
		t.Error("Read without a codec: no error")
	}
	if err := kind.Write(newGenerated(), &buffer, resource.KindEncodingYAML); err == nil {
		t.Error("Write without a codec: no error")
	}
}

func TestSimpleSchemaGroup(t *testing.T) {
	group := resource.NewSimpleSchemaGroup("example.com", "v1")
	color := resource.SelectableField{
		FieldSelector:  "spec.color",
		FieldValueFunc: func(o resource.Object) (string, error) { return o.(*Generated).Spec.Color, nil },
	}
	added := group.AddSchema(
		&Generated{}, &GeneratedList{}, resource.WithSelectableFields([]resource.SelectableField{color}),
	)
	if all := group.Schemas(); len(all) != 1 || all[0] != resource.Schema(added) || added.Group() != "example.com" {
		t.Errorf("Schemas() = %v", all)
	}
	fields := added.SelectableFields()
	if len(fields) != 1 || fields[0].FieldSelector != "spec.color" {
		t.Fatalf("SelectableFields() = %v", fields)
	}
	if value, err := fields[0].FieldValueFunc(newGenerated()); value != "red" || err != nil {
		t.Errorf("the value of the field is %q, %v", value, err)
	}
}

func TestAnnotations(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	annotations := map[string]string{}
	for field, value := range map[string]any{
		"text": `a "quoted" one`, "at": at, "num/ber": 5, "list": []string{"a"}, "none": "x",
	} {
		if err := resource.WriteGrafanaAnnotation(annotations, field, value); err != nil {
			t.Fatal(err)
		}
	}
	if err := resource.WriteGrafanaAnnotation(annotations, "none", nil); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"grafana.com/text": `a "quoted" one`, "grafana.com/at": "2026-01-02T03:04:05Z", "grafana.com/number": "5",
		"grafana.com/list": `["a"]`,
	}
	if diff := cmp.Diff(want, annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if got, err := resource.ReadGrafanaAnnotation[string](annotations, "text"); got != `a "quoted" one` || err != nil {
		t.Errorf("text = %q, %v", got, err)
	}
	if got, err := resource.ReadGrafanaAnnotation[time.Time](annotations, "at"); !got.Equal(at) || err != nil {
		t.Errorf("at = %v, %v", got, err)
	}
	if got, err := resource.ReadGrafanaAnnotation[int](annotations, "num/ber"); got != 5 || err != nil {
		t.Errorf("number = %v, %v", got, err)
	}
	if _, err := resource.ReadGrafanaAnnotation[int](annotations, "none"); !errors.Is(err, resource.ErrAnnotationMissing) {
		t.Errorf("no annotation: %v", err)
	}
	syntax := &json.SyntaxError{}
	if _, err := resource.ReadGrafanaAnnotation[int](annotations, "text"); !errors.As(err, &syntax) {
		t.Errorf("not a number: %v", err)
	}
}

func TestCommonMetadata_OfAnnotations(t *testing.T) {
	obj := newGenerated()
	obj.Annotations = map[string]string{
		resource.AnnotationCreatedBy: "user:1", resource.AnnotationUpdatedBy: "user:2",
		resource.AnnotationUpdateTimestamp: "2026-01-02T03:04:05Z",
	}
	got := resource.CommonMetadataOf(obj)
	if got.CreatedBy != "user:1" || got.UpdatedBy != "user:2" ||
		!got.UpdateTimestamp.Equal(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)) {
		t.Errorf("metadata: %+v", got)
	}
	obj.Annotations[resource.AnnotationUpdateTimestamp] = "yesterday"
	if got := resource.CommonMetadataOf(obj).UpdateTimestamp; !got.IsZero() {
		t.Errorf("a timestamp that is not a time is read as %v", got)
	}
}
