// SPDX-License-Identifier: Apache-2.0

package simple_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/app"
	"trueup.dev/resource"
	"trueup.dev/simple"
)

// admissions records the admission requests that an app received.
type admissions struct {
	mu       sync.Mutex
	requests []*app.AdmissionRequest
}

// handlers returns a mutator that converts titles to upper case, and a validator that denies some requests.
func (a *admissions) handlers() (simple.KindMutator, simple.KindValidator) {
	mutator := &simple.Mutator{MutateFunc: func(
		_ context.Context, req *app.AdmissionRequest,
	) (*app.MutatingResponse, error) {
		widget := req.Object.(*Widget)
		switch widget.Spec.Title {
		case "immutable":
			return nil, errors.New("this title cannot be changed")
		case "panic":
			panic("this title is too much")
		case "asis":
			return nil, nil
		case "another":
			return &app.MutatingResponse{UpdatedObject: newWidget(widget.Name, "ANOTHER")}, nil
		}
		widget.Spec.Title = strings.ToUpper(widget.Spec.Title)
		return &app.MutatingResponse{UpdatedObject: widget}, nil
	}}
	validator := &simple.Validator{ValidateFunc: func(_ context.Context, req *app.AdmissionRequest) error {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.requests = append(a.requests, req)
		switch {
		case req.Action == app.AdmissionActionDelete:
			if req.OldObject.GetLabels()["protected"] == "true" {
				return errors.New("it is protected")
			}
		case req.Object.(*Widget).Spec.Size > 99:
			return apierrs.NewInvalid(schema.GroupKind{Group: group, Kind: "Widget"}, req.Object.GetName(), nil)
		case req.Object.(*Widget).Spec.Size > 9:
			return fmt.Errorf("size %d is more than 9", req.Object.(*Widget).Spec.Size)
		}
		return nil
	}}
	return mutator, validator
}

// last returns the last request for an object that satisfies a condition.
func (a *admissions) last(name string, is func(*app.AdmissionRequest) bool) *app.AdmissionRequest {
	a.mu.Lock()
	defer a.mu.Unlock()
	var last *app.AdmissionRequest
	for _, req := range a.requests {
		for _, object := range []client.Object{req.Object, req.OldObject} {
			if object != nil && object.GetName() == name && is(req) {
				last = req
			}
		}
	}
	return last
}

// admitted returns an env with an app that admits widgets.
func admitted(t *testing.T) (*env, *admissions) {
	t.Helper()
	e, asked := newEnv(t), &admissions{}
	config := e.config("admission")
	mutator, validator := asked.handlers()
	config.ManagedKinds = []simple.AppManagedKind{{Kind: widgetKind, Mutator: mutator, Validator: validator}}
	at := e.serveWebhooks(&config)
	made := e.make(config)
	e.run(made)
	e.Eventually(func() error { return made.Manager().GetWebhookServer().StartedChecker()(nil) })
	e.register(made, at)
	e.Eventually(func() error { // until the API server has loaded both configurations
		probe := newWidget("probe", "probe")
		probe.Namespace, probe.Spec.Size = e.Namespace, 10
		if err := e.Create(e.Context(), probe, client.DryRunAll); !apierrs.IsForbidden(err) {
			return fmt.Errorf("the validator is not called yet: %w", err)
		}
		probe.Spec.Size = 1
		if err := e.Create(e.Context(), probe, client.DryRunAll); err != nil || probe.Spec.Title != "PROBE" {
			return fmt.Errorf("the mutator is not called yet: title %q, error %w", probe.Spec.Title, err)
		}
		return nil
	})
	return e, asked
}

func TestMutatorChangesObjects(t *testing.T) {
	e, _ := admitted(t)
	widget := newWidget("it", "small")
	e.Add(widget)
	if widget.Spec.Title != "SMALL" {
		t.Errorf("title = %q after the creation, want SMALL", widget.Spec.Title)
	}
	e.patch(widget, `{"spec":{"title":"smaller"}}`)
	e.Must(e.Read(widget))
	if widget.Spec.Title != "SMALLER" {
		t.Errorf("title = %q after the update, want SMALLER", widget.Spec.Title)
	}
	replaced := newWidget("replaced", "another")
	e.Add(replaced)
	if replaced.Spec.Title != "ANOTHER" {
		t.Errorf("title = %q, want that of the object that the mutator returned", replaced.Spec.Title)
	}
}

func TestMutatorKeepsUnknownFields(t *testing.T) {
	e, _ := admitted(t)
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/v1", "kind": "Widget", "metadata": map[string]any{"name": "it"},
		"spec": map[string]any{"title": "small", "color": "red"}, "more": int64(1),
	}}
	e.Add(object)
	want := map[string]any{"spec": map[string]any{"title": "SMALL", "color": "red"}, "more": int64(1)}
	got := map[string]any{"spec": object.Object["spec"], "more": object.Object["more"]}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("object (-want +got):\n%s", diff)
	}
}

// The response has a patch only if the mutator has changed the object.
func TestMutatorThatChangesNothingSendsNoPatch(t *testing.T) {
	e := newEnv(t)
	config := e.config("patching")
	mutator, _ := (&admissions{}).handlers()
	config.ManagedKinds = []simple.AppManagedKind{{Kind: widgetKind, Mutator: mutator}}
	server := httptest.NewServer(e.make(config).Manager().GetWebhookServer().WebhookMux())
	t.Cleanup(server.Close)
	for name, tc := range map[string]struct {
		title string
		want  string
	}{
		"it returns nothing":       {title: "asis"},
		"it returns the same":      {title: "UPPER"},
		"it returns another title": {title: "lower", want: `[{"op":"replace","path":"/spec/title","value":"LOWER"}]`},
	} {
		for _, path := range []string{"/mutate/widgets." + group, "/mutate"} { // of the kind, and of all kinds
			t.Run(name+" "+path, func(t *testing.T) {
				object := fmt.Sprintf(
					`{"apiVersion":"%s/v1","kind":"Widget","metadata":{"name":"it"},"spec":{"title":%q,"size":0,"color":"red"}}`,
					group, tc.title,
				)
				body, err := json.Marshal(admissionv1.AdmissionReview{
					TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
					Request: &admissionv1.AdmissionRequest{
						UID: "uid", Kind: metav1.GroupVersionKind(widgetKind.GroupVersionKind()), Operation: admissionv1.Create,
						Object: runtime.RawExtension{Raw: []byte(object)},
					},
				})
				e.Must(err)
				answer, err := http.Post(server.URL+path, "application/json", bytes.NewReader(body))
				e.Must(err)
				defer answer.Body.Close()
				review := admissionv1.AdmissionReview{}
				e.Must(json.NewDecoder(answer.Body).Decode(&review))
				if !review.Response.Allowed || string(review.Response.Patch) != tc.want {
					t.Errorf("allowed = %t, patch = %s, want %s", review.Response.Allowed, review.Response.Patch, tc.want)
				}
			})
		}
	}
}

func TestDenialsReachTheUser(t *testing.T) {
	e, _ := admitted(t)
	big := func(size int64) *Widget {
		widget := newWidget("it", "big")
		widget.Namespace, widget.Spec.Size = e.Namespace, size
		return widget
	}
	titled := func(title string) *Widget {
		widget := newWidget("it", title)
		widget.Namespace = e.Namespace
		return widget
	}
	validated, mutated := "validate.widgets.simple.example.com", "mutate.widgets.simple.example.com"
	for name, tc := range map[string]struct {
		widget     *Widget
		options    []client.CreateOption
		want       string
		wantReason metav1.StatusReason
	}{
		"by the validator": {
			widget: big(10), want: validated + `" denied the request: size 10 is more than 9`,
			wantReason: metav1.StatusReasonForbidden,
		},
		"of a dry run": {
			widget: big(10), options: []client.CreateOption{
				client.DryRunAll,
			}, want: "size 10 is more than 9", wantReason: metav1.StatusReasonForbidden,
		},
		"with a reason of its own": {
			widget: big(100), want: validated + `" denied the request: Widget.simple.example.com "it" is invalid`,
			wantReason: metav1.StatusReasonInvalid,
		},
		"by the mutator": {
			widget: titled("immutable"), want: mutated + `" denied the request: this title cannot be changed`,
			wantReason: metav1.StatusReasonForbidden,
		},
		"because the mutator panics": {
			widget: titled("panic"), want: `the mutator of app "admission" panicked`,
			wantReason: metav1.StatusReasonInternalError,
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := e.Create(e.Context(), tc.widget, tc.options...)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v, want %s", err, tc.want)
			}
			if got := apierrs.ReasonForError(err); got != tc.wantReason {
				t.Errorf("reason = %q, want %q", got, tc.wantReason)
			}
		})
	}
}

func TestValidatorSeesRequests(t *testing.T) {
	e, asked := admitted(t)
	widget := newWidget("it", "first")
	e.Add(widget)
	e.patch(widget, `{"spec":{"title":"second"}}`)
	dryRun := widget.DeepCopy()
	e.Must(
		e.Patch(
			e.Context(), dryRun, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"title":"third"}}`)),
			client.DryRunAll,
		),
	)
	e.Must(e.Delete(e.Context(), widget))

	type seen struct {
		Action           app.AdmissionAction
		GVK              schema.GroupVersionKind
		Object, Old      string
		DryRun, WithUser bool
	}
	see := func(action app.AdmissionAction, dryRun bool) seen {
		req := asked.last("it", func(req *app.AdmissionRequest) bool { return req.Action == action && req.DryRun == dryRun })
		if req == nil {
			return seen{}
		}
		s := seen{Action: req.Action, GVK: req.GroupVersionKind(), DryRun: req.DryRun, WithUser: req.UserInfo.Username != ""}
		if req.Object != nil {
			s.Object = title(req.Object)
		}
		if req.OldObject != nil {
			s.Old = title(req.OldObject)
		}
		return s
	}
	gvk := widgetKind.GroupVersionKind()
	want := []seen{
		{Action: app.AdmissionActionCreate, GVK: gvk, Object: "FIRST", WithUser: true},
		{Action: app.AdmissionActionUpdate, GVK: gvk, Object: "SECOND", Old: "FIRST", WithUser: true},
		{Action: app.AdmissionActionUpdate, GVK: gvk, Object: "THIRD", Old: "SECOND", DryRun: true, WithUser: true},
		{Action: app.AdmissionActionDelete, GVK: gvk, Old: "SECOND", WithUser: true},
	}
	got := []seen{
		see(app.AdmissionActionCreate, false), see(app.AdmissionActionUpdate, false), see(app.AdmissionActionUpdate, true),
		see(app.AdmissionActionDelete, false),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestValidatorDeniesDeletions(t *testing.T) {
	e, _ := admitted(t)
	widget := newWidget("it", "dear")
	widget.Labels = map[string]string{"protected": "true"}
	e.Add(widget)
	err := e.Delete(e.Context(), widget)
	if want := `denied the request: it is protected`; !apierrs.IsForbidden(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("error = %v, want %s", err, want)
	}
	e.patch(widget, `{"metadata":{"labels":null}}`)
	e.Must(e.Delete(e.Context(), widget))
	e.WaitForDeletion(widget)
}

func TestAppAnswersDirectly(t *testing.T) {
	e := newEnv(t)
	config := e.config("direct")
	other := &simple.Mutator{MutateFunc: func(context.Context, *app.AdmissionRequest) (*app.MutatingResponse, error) {
		return &app.MutatingResponse{UpdatedObject: newGadgetV1("other", "")}, nil
	}}
	_, validator := (&admissions{}).handlers()
	config.ManagedKinds = []simple.AppManagedKind{
		{Kind: widgetKind, Mutator: other, Validator: validator}, {Kind: configMapKind, Validator: validator},
	}
	made := e.make(config)
	widget := newWidget("it", "")
	widget.Spec.Size = 10
	request := func(kind resource.Kind, object resource.Object) *app.AdmissionRequest {
		return &app.AdmissionRequest{
			Action: app.AdmissionActionCreate, Group: kind.Group(), Version: kind.Version(), Kind: kind.Kind(), Object: object,
		}
	}
	if err := made.Validate(t.Context(), request(widgetKind, widget)); err == nil ||
		err.Error() != "size 10 is more than 9" {
		t.Errorf("Validate returns %v", err)
	}
	if err := made.Validate(
		t.Context(), request(gadgetV1, newGadgetV1("it", "")),
	); !errors.Is(err, app.ErrNotImplemented) {
		t.Errorf("Validate of a kind without a Validator returns %v", err)
	}
	if _, err := made.Mutate(
		t.Context(), request(configMapKind, newConfigMap("it", nil)),
	); !errors.Is(err, app.ErrNotImplemented) {
		t.Errorf("Mutate of a kind without a Mutator returns %v", err)
	}
	if _, err := made.Mutate(t.Context(), request(widgetKind, widget)); err == nil ||
		!strings.Contains(err.Error(), "returned a *simple_test.GadgetV1, must be a") {
		t.Errorf("Mutate with an object of another type returns %v", err)
	}
	other.MutateFunc = func(context.Context, *app.AdmissionRequest) (*app.MutatingResponse, error) {
		return &app.MutatingResponse{UpdatedObject: (*Widget)(nil)}, nil
	}
	if response, err := made.Mutate(t.Context(), request(widgetKind, widget)); err != nil ||
		response.UpdatedObject != resource.Object(widget) {
		t.Errorf("Mutate with a nil *Widget returns %v, %v", response, err)
	}
	if diff := cmp.Diff([]string{"Widget.v1.simple.example.com", "ConfigMap.v1"}, names(made.ManagedKinds())); diff != "" {
		t.Errorf("managed kinds (-want +got):\n%s", diff)
	}
}

func names(kinds []resource.Kind) []string {
	var names []string
	for _, kind := range kinds {
		names = append(names, kind.String())
	}
	return names
}
