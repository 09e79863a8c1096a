// SPDX-License-Identifier: Apache-2.0

package simple_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"trueup.dev/resource"
	"trueup.dev/simple"
)

// GadgetV3 has no conversion methods.
type (
	GadgetV3Spec struct {
		Names []string `json:"names"`
	}
	GadgetV3     = resource.TypedSpecObject[GadgetV3Spec]
	GadgetV3List = resource.TypedList[GadgetV3]
)

var gadgetV3 = resource.Kind{
	Schema: resource.NewSimpleSchema(group, "v3", &GadgetV3{}, &GadgetV3List{}, resource.WithKind("Gadget")),
}

func gadgets() *simple.HubConverter[*GadgetV2] {
	return &simple.HubConverter[*GadgetV2]{
		Hub: gadgetV2,
		Spokes: []simple.Spoke[*GadgetV2]{
			{Kind: gadgetV1},
			simple.NewSpoke(gadgetV3,
				func(object *GadgetV3, hub *GadgetV2) error {
					if len(object.Spec.Names) != 2 {
						return errors.New("two names are needed")
					}
					hub.Spec.First, hub.Spec.Last = object.Spec.Names[0], object.Spec.Names[1]
					return nil
				},
				func(object *GadgetV3, hub *GadgetV2) error {
					object.Spec.Names = []string{hub.Spec.First, hub.Spec.Last}
					return nil
				}),
		},
	}
}

func rawGadget(version, spec string) simple.RawKind {
	return simple.RawKind{Kind: "Gadget", APIVersion: group + "/" + version, Group: group, Version: version, Raw: []byte(
		`{"apiVersion":"` + group + `/` + version +
			`","kind":"Gadget","metadata":{"name":"it","labels":{"a":"b"},"uid":"u"},"spec":` + spec + `}`,
	)}
}

func TestHubConverter(t *testing.T) {
	for name, tc := range map[string]struct {
		from    simple.RawKind
		to      string
		want    string
		wantErr string
	}{
		"spoke to hub": {
			from: rawGadget("v1", `{"name":"Ada Lovelace"}`), to: "v2", want: `{"first":"Ada","last":"Lovelace"}`,
		},
		"hub to spoke": {
			from: rawGadget("v2", `{"first":"Ada","last":"Lovelace"}`), to: "v1", want: `{"name":"Ada Lovelace"}`,
		},
		"spoke to spoke": {
			from: rawGadget("v1", `{"name":"Ada Lovelace"}`), to: "v3", want: `{"names":["Ada","Lovelace"]}`,
		},
		"by functions": {
			from: rawGadget("v3", `{"names":["Ada","Lovelace"]}`), to: "v2", want: `{"first":"Ada","last":"Lovelace"}`,
		},
		"a conversion fails": {
			from: rawGadget("v1", `{"name":"Nemo"}`), to: "v2", wantErr: "Nemo is not a valid name",
		},
		"a function fails": {from: rawGadget("v3", `{"names":[]}`), to: "v2", wantErr: "two names are needed"},
		"from a version not known": {
			from: rawGadget("v9", `{}`), to: "v2", wantErr: "Gadget.simple.example.com has no version simple.example.com/v9",
		},
		"to a version not known": {
			from: rawGadget("v1", `{}`), to: "v9", wantErr: "Gadget.simple.example.com has no version simple.example.com/v9",
		},
		"a field has the wrong type": {
			from: rawGadget("v1", `{"name":1}`), to: "v2",
			wantErr: "not a valid object: json: cannot unmarshal number into Go struct field",
		},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := gadgets().Convert(tc.from, group+"/"+tc.to)
			if tc.wantErr != "" {
				if err == nil || !strings.HasPrefix(err.Error(), tc.wantErr) {
					t.Errorf("error = %v, want %s", err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got, want any
			if err := errors.Join(json.Unmarshal(raw, &got), json.Unmarshal(rawGadget(tc.to, tc.want).Raw, &want)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("object (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHubConverterListsAllMistakes(t *testing.T) {
	type hub = *GadgetV2
	for name, tc := range map[string]struct {
		converter *simple.HubConverter[hub]
		want      []string
	}{
		"no hub":    {converter: &simple.HubConverter[hub]{}, want: []string{"HubConverter must define Hub"}},
		"no spokes": {converter: &simple.HubConverter[hub]{Hub: gadgetV2}, want: []string{"HubConverter must define Spokes"}},
		"valid":     {converter: gadgets()},
		"of another hub": {
			converter: &simple.HubConverter[hub]{Hub: gadgetV1, Spokes: []simple.Spoke[hub]{{Kind: gadgetV1}}},
			want: []string{
				"HubConverter must have the kind of its type parameter as Hub, but Gadget.v1.simple.example.com is " +
					"*simple_test.GadgetV1",
				"HubConverter must have each version once, but has v1 again at Spokes[0]",
			},
		},
		"spokes": {
			converter: &simple.HubConverter[hub]{
				Hub: gadgetV2, Spokes: []simple.Spoke[hub]{{}, {Kind: gadgetV3}, {Kind: widgetKind}},
			},
			want: []string{
				"HubConverter must define Spokes[0].Kind",
				"HubConverter must define ConvertTo and ConvertFrom at Spokes[1], because " +
					"*resource.TypedSpecObject[trueup.dev/simple_test.GadgetV3Spec] has no such methods",
				"HubConverter must have another version of Gadget.simple.example.com at Spokes[2], " +
					"got Widget.v1.simple.example.com",
				"HubConverter must define ConvertTo and ConvertFrom at Spokes[2], because " +
					"*resource.TypedSpecStatusObject[trueup.dev/simple_test.WidgetSpec,trueup.dev/simple_test.WidgetStatus] " +
					"has no such methods",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			if err := tc.converter.Validate(t.Context()); err != nil {
				got = strings.Split(err.Error(), "\n")
				if _, converted := tc.converter.Convert(rawGadget("v1", `{}`), group+"/v2"); converted == nil ||
					converted.Error() != err.Error() {
					t.Errorf("Convert returns %v, want what Validate returns", converted)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("mistakes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheckRoundTrip(t *testing.T) {
	gadget := &GadgetV1{
		ObjectMeta: metav1.ObjectMeta{Name: "it", Labels: map[string]string{"a": "b"}},
		Spec:       GadgetV1Spec{Name: "Ada Lovelace"},
	}
	if err := simple.CheckRoundTrip(gadgets(), gadgetV1, gadget, group+"/v2"); err != nil {
		t.Errorf("a lossless conversion: %v", err)
	}
	if err := simple.CheckRoundTrip(gadgets(), gadgetV1, gadget, group+"/v3"); err != nil {
		t.Errorf("a lossless conversion to another spoke: %v", err)
	}
	spaced := gadget.DeepCopyObject().(*GadgetV1)
	spaced.Spec.Name = "Ada Lovelace "
	renamed := simple.ConverterFunc(func(obj simple.RawKind, target string) ([]byte, error) {
		raw, err := gadgets().Convert(obj, target)
		return []byte(strings.Replace(string(raw), `"name":"it"`, `"name":"other"`, 1)), err
	})
	same := simple.ConverterFunc(func(obj simple.RawKind, _ string) ([]byte, error) { return obj.Raw, nil })
	nothing := simple.ConverterFunc(func(simple.RawKind, string) ([]byte, error) { return nil, nil })
	for name, tc := range map[string]struct {
		converter simple.Converter
		object    *GadgetV1
		want      string
	}{
		"a field is lost":      {converter: gadgets(), object: spaced, want: ` and back (-before +after)`},
		"the metadata changes": {converter: renamed, object: gadget, want: `: the metadata must not change`},
		"the version does not": {
			converter: same, object: gadget, want: `: the converter returned a Gadget of simple.example.com/v1`,
		},
		"no object":          {converter: nothing, object: gadget, want: `: the converter returned an invalid object`},
		"a conversion fails": {converter: gadgets(), object: &GadgetV1{Spec: GadgetV1Spec{Name: "Nemo"}}, want: `: Nemo`},
	} {
		t.Run(name, func(t *testing.T) {
			err := simple.CheckRoundTrip(tc.converter, gadgetV1, tc.object, group+"/v2")
			if want := "from simple.example.com/v1 to simple.example.com/v2" + tc.want; err == nil ||
				!strings.HasPrefix(err.Error(), want) {
				t.Errorf("error = %v, want %s", err, want)
			}
		})
	}
}
