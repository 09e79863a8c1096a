// SPDX-License-Identifier: Apache-2.0

package simple_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/app"
	"trueup.dev/simple"
)

var gadgetConverters = map[schema.GroupKind]simple.Converter{{Group: group, Kind: "Gadget"}: gadgets()}

func newGadgetV1(name, fullName string) *GadgetV1 {
	return &GadgetV1{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: GadgetV1Spec{Name: fullName}}
}

func newGadgetV2(name, first, last string) *GadgetV2 {
	return &GadgetV2{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: GadgetV2Spec{First: first, Last: last}}
}

func TestConverterServesTheAPI(t *testing.T) {
	e := newEnv(t, crd("Gadget", "gadgets", "v1", "v2"))
	config := e.config("conversion")
	config.ManagedKinds = []simple.AppManagedKind{{Kind: gadgetV1}, {Kind: gadgetV2, Validator: &simple.Validator{
		ValidateFunc: func(_ context.Context, req *app.AdmissionRequest) error {
			if req.Object != nil && req.Object.(*GadgetV2).Spec.Last == "Byron" {
				return errors.New("poets are not admitted")
			}
			return nil
		},
	}}}
	config.Converters = gadgetConverters
	at := e.serveWebhooks(&config)
	made := e.make(config)
	e.run(made)
	e.Eventually(func() error { return made.Manager().GetWebhookServer().StartedChecker()(nil) })
	e.convertGadgets(made.CustomResourceConversion(at))
	e.Cleanup(func() { // objects that remain would not be readable
		e.convertGadgets(&apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter})
	})
	e.Add(newGadgetV1("ada", "Ada Lovelace"))
	e.Eventually(func() error { // until the API server has loaded the conversion
		got := newGadgetV2("ada", "", "")
		e.Must(e.Read(got))
		if got.Spec.First != "Ada" || got.Spec.Last != "Lovelace" {
			return fmt.Errorf("v2 of what was created as v1 is %v", got.Spec)
		}
		return nil
	})

	grace := newGadgetV2("grace", "Grace", "Hopper")
	grace.Labels = map[string]string{"navy": "yes"}
	e.Add(grace)
	got := newGadgetV1("grace", "")
	e.Must(e.Read(got))
	if got.Spec.Name != "Grace Hopper" || got.Labels["navy"] != "yes" || got.UID != grace.UID {
		t.Errorf("v1 of what was created as v2 is %v", got)
	}
	e.patch(grace, `{"spec":{"last":"Murray"}}`)
	e.Must(e.Read(got))
	if got.Spec.Name != "Grace Murray" {
		t.Errorf("v1 of what was changed as v2 is %v", got.Spec)
	}

	var list GadgetV2List
	e.Must(e.List(e.Context(), &list, client.InNamespace(e.Namespace)))
	names := map[string]string{}
	for _, item := range list.Items {
		names[item.Name] = item.Spec.First + "/" + item.Spec.Last
	}
	if diff := cmp.Diff(map[string]string{"ada": "Ada/Lovelace", "grace": "Grace/Murray"}, names); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}

	e.Add(newGadgetV1("nemo", "Nemo")) // is stored unchanged
	err := e.Get(e.Context(), client.ObjectKey{Namespace: e.Namespace, Name: "nemo"}, &GadgetV2{})
	if want := "Gadget " + e.Namespace + "/nemo: Nemo is not a valid name"; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("error = %v, want %s", err, want)
	}

	// A validator receives objects in its own version, whatever the version of the request.
	e.register(made, at)
	e.Eventually(func() error {
		poet := newGadgetV1("poet", "George Byron")
		poet.Namespace = e.Namespace
		err := e.Create(e.Context(), poet, client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), "poets are not admitted") {
			return fmt.Errorf("the validator of v2 does not deny a v1: %w", err)
		}
		return nil
	})
}

// convertGadgets changes how the API server converts gadgets.
func (e *env) convertGadgets(conversion *apiextensionsv1.CustomResourceConversion) {
	e.Helper()
	e.convert("gadgets", conversion)
}

// convert changes how the API server converts objects of a kind.
func (e *env) convert(plural string, conversion *apiextensionsv1.CustomResourceConversion) {
	e.Helper()
	definition := &apiextensionsv1.CustomResourceDefinition{}
	e.Eventually(func() error { // the API server also writes the status
		if err := e.Get(context.Background(), client.ObjectKey{Name: plural + "." + group}, definition); err != nil {
			return err
		}
		definition.Spec.Conversion = conversion
		return e.Update(context.Background(), definition)
	})
}

func TestConversionReview(t *testing.T) {
	e := newEnv(t)
	config := e.config("review")
	config.Converters = map[schema.GroupKind]simple.Converter{
		{Group: group, Kind: "Gadget"}: gadgets(),
		{Group: group, Kind: "Widget"}: simple.ConverterFunc(func(simple.RawKind, string) ([]byte, error) {
			panic("no more widgets")
		}),
	}
	made := e.make(config)
	server := httptest.NewServer(made.Manager().GetWebhookServer().WebhookMux())
	t.Cleanup(server.Close)
	ask := func(body string) (int, *apiextensionsv1.ConversionResponse) {
		answer, err := http.Post(server.URL+"/convert", "application/json", strings.NewReader(body))
		e.Must(err)
		defer answer.Body.Close()
		review := &apiextensionsv1.ConversionReview{}
		if answer.StatusCode == http.StatusOK {
			e.Must(json.NewDecoder(answer.Body).Decode(review))
		}
		return answer.StatusCode, review.Response
	}
	review := func(version string, objects ...string) string {
		request := apiextensionsv1.ConversionReview{
			Request: &apiextensionsv1.ConversionRequest{UID: "uid", DesiredAPIVersion: group + "/" + version},
		}
		for _, object := range objects {
			request.Request.Objects = append(request.Request.Objects, runtime.RawExtension{Raw: []byte(object)})
		}
		body, err := json.Marshal(request)
		e.Must(err)
		return string(body)
	}
	gizmo := `{"kind":"Gizmo","apiVersion":"` + group + `/v1"}`
	one, two := string(rawGadget("v1", `{"name":"Ada Lovelace"}`).Raw), string(rawGadget("v2", `{"first":"Grace"}`).Raw)
	for name, tc := range map[string]struct {
		body       string
		wantStatus int
		wantSpecs  []string
		want       string
	}{
		"all objects, in order": {
			body: review("v2", two, one), wantSpecs: []string{`{"first":"Grace"}`, `{"first":"Ada","last":"Lovelace"}`},
		},
		"no objects": {body: review("v2")},
		"one fails": {
			body: review("v2", two, string(rawGadget("v1", `{"name":"Nemo"}`).Raw)),
			want: "Gadget it: Nemo is not a valid name",
		},
		"one is invalid": {
			body: review("v2", `{"kind":"Gadget"}`), want: `object 0: invalid object: apiVersion and kind are required, got "" and "Gadget"`,
		},
		"the converter panics": {
			body: review("v2", `{"kind":"Widget","apiVersion":"`+group+`/v1"}`), want: "the converter panicked: no more widgets",
		},
		"no converter": {
			body: review("v2", gizmo), want: "Gizmo: conversion of Gizmo.simple.example.com: not implemented",
		},
		"not a review":             {body: `nonsense`, wantStatus: http.StatusBadRequest},
		"a review with no request": {body: `{}`, wantStatus: http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			status, response := ask(tc.body)
			if want := max(tc.wantStatus, http.StatusOK); status != want {
				t.Fatalf("status = %d, want %d", status, want)
			}
			if response == nil {
				return
			}
			if response.UID != "uid" || response.Result.Message != tc.want ||
				(response.Result.Status == metav1.StatusSuccess) != (tc.want == "") {
				t.Errorf("response = %v, want message %q", response, tc.want)
			}
			var specs []string
			for _, object := range response.ConvertedObjects {
				var head struct{ Spec json.RawMessage }
				e.Must(json.Unmarshal(object.Raw, &head))
				specs = append(specs, string(head.Spec))
			}
			if diff := cmp.Diff(tc.wantSpecs, specs); diff != "" {
				t.Errorf("converted specs (-want +got):\n%s", diff)
			}
		})
	}

	gvk := func(version string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: group, Version: version, Kind: "Gadget"}
	}
	request := app.ConversionRequest{SourceGVK: gvk("v1"), TargetGVK: gvk("v2"), Raw: app.RawObject{Raw: []byte(one)}}
	raw, err := made.Convert(t.Context(), request)
	if err != nil || !strings.Contains(string(raw.Raw), `"first":"Ada"`) {
		t.Errorf("Convert returns %v, %v", raw, err)
	}
	if _, err := made.Convert(t.Context(), app.ConversionRequest{
		SourceGVK: gvk("v1"), TargetGVK: widgetKind.GroupVersionKind(),
	}); err == nil {
		t.Error("Convert makes a Widget of a Gadget")
	}
	unknown := schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Gizmo"}
	if _, err := made.Convert(t.Context(), app.ConversionRequest{
		SourceGVK: unknown, TargetGVK: unknown,
	}); !errors.Is(err, app.ErrNotImplemented) {
		t.Errorf("Convert of a kind without a Converter returns %v", err)
	}
}
