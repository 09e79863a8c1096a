// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	"trueup.dev/stash"
	rtesting "trueup.dev/testing"
	rtime "trueup.dev/time"
	"trueup.dev/validation"
)

type (
	// plain is a resource without defaults.
	plain        = fixture.ResourceNoStatus
	plainSync    = reconcilers.SyncReconciler[*plain]
	plainAdapter = reconcilers.AdmissionWebhookAdapter[*plain]
	adapter      = reconcilers.AdmissionWebhookAdapter[*fixture.Resource]
)

const plainObject = `{"apiVersion":"fixture.trueup.dev/v1","kind":"ResourceNoStatus","metadata":{"namespace":"default","name":"test"},"spec":{}}`

// admissionRequest returns a request to admit an object.
func admissionRequest(operation admissionv1.Operation, object string) admission.Request {
	req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: "request-uid", Operation: operation, Namespace: "default", Name: "test",
	}}
	if operation == admissionv1.Delete {
		req.OldObject = runtime.RawExtension{Raw: []byte(object)}
	} else {
		req.Object = runtime.RawExtension{Raw: []byte(object)}
	}
	return req
}

// hello changes a resource.
func hello(resource *plain) { resource.Spec.Fields = map[string]string{"hello": "world"} }

// allowing and denying return responses.
func allowing(patches ...jsonpatch.Operation) admission.Response {
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Allowed: true}, Patches: patches}
}

func denying(message string) admission.Response {
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{
		Result: &metav1.Status{Code: http.StatusInternalServerError, Message: message},
	}}
}

// plainFactory returns a webhook for plain resources.
func plainFactory(
	_ *testing.T, ctx context.Context, tc *rtesting.AdmissionWebhookTestCase, c reconcilers.Config,
) (*admission.Webhook, error) {
	return changed(&plainAdapter{Config: c, Reconciler: &plainSync{}}, tc.Metadata).BuildWithContext(ctx)
}

// admitting returns the Metadata of a case for plainFactory. A webhook ignores the result of its reconciler.
func admitting(sync func(ctx context.Context, resource *plain) error) map[string]any {
	return changes(func(r *plainAdapter) {
		r.Reconciler = &plainSync{SyncWithResult: func(ctx context.Context, resource *plain) (reconcilers.Result, error) {
			return requeue, sync(ctx, resource)
		}}
	})
}

// answering returns the Metadata of a case in which the reconciler changes the response and the resource.
func answering(answer func(*admission.Response)) map[string]any {
	return admitting(func(ctx context.Context, resource *plain) error {
		answer(reconcilers.RetrieveAdmissionResponse(ctx))
		hello(resource)
		return nil
	})
}

// greet is a Sync function.
func greet(_ context.Context, resource *plain) error { hello(resource); return nil }

var greeting = jsonpatch.Operation{Operation: "add", Path: "/spec/fields", Value: map[string]any{"hello": "world"}}

func TestAdmissionWebhookAdapter_Handle(t *testing.T) {
	create, update := admissionRequest(admissionv1.Create, plainObject), admissionRequest(admissionv1.Update, plainObject)
	remove, unreadable := admissionRequest(admissionv1.Delete, plainObject), admissionRequest(admissionv1.Create, " ")
	returning := func(err error) map[string]any { return admitting(func(context.Context, *plain) error { return err }) }
	own := jsonpatch.Operation{Operation: "add", Path: "/own", Value: true}
	forbidden := &metav1.Status{Code: http.StatusForbidden, Message: "no"}
	failure := errors.Join(errTest, reconcilers.ErrDurable)

	rtesting.AdmissionWebhookTests{
		// By default, a request is allowed.
		"nothing": {Request: &create, Metadata: returning(nil), ExpectedResponse: allowing()},
		// A change is returned as a patch.
		"mutate": {Request: &create, Metadata: admitting(greet), ExpectedResponse: allowing(greeting)},
		// An update is handled like a create.
		"update": {Request: &update, Metadata: admitting(greet), ExpectedResponse: allowing(greeting)},
		// An error denies the request, and no patch is returned.
		"error": {
			Request: &create, ExpectedResponse: denying("failure of the test"),
			Metadata: admitting(func(_ context.Context, resource *plain) error { hello(resource); return errTest }),
		},
		// A quiet error also denies the request.
		"quiet error": {Request: &create, Metadata: returning(errQuiet), ExpectedResponse: denying(errQuiet.Error())},
		// A durable error halts, but it is an error.
		"durable error": {Request: &create, Metadata: returning(failure), ExpectedResponse: denying(failure.Error())},
		// A reconciler may deny the request without an error.
		"deny": {
			Request: &create, ExpectedResponse: admission.Response{
				AdmissionResponse: admissionv1.AdmissionResponse{Result: forbidden},
			},
			Metadata: admitting(func(ctx context.Context, _ *plain) error {
				resp := reconcilers.RetrieveAdmissionResponse(ctx)
				resp.Allowed, resp.Result = false, forbidden
				return nil
			}),
		},
		// An existing result is kept.
		"error with a result": {
			Request: &create, ExpectedResponse: admission.Response{
				AdmissionResponse: admissionv1.AdmissionResponse{Result: forbidden},
			},
			Metadata: admitting(func(ctx context.Context, _ *plain) error {
				reconcilers.RetrieveAdmissionResponse(ctx).Result = forbidden
				return errQuiet
			}),
		},
		// A reconciler may set the patch itself.
		"own patches": {
			Request: &create, ExpectedResponse: allowing(own),
			Metadata: answering(func(resp *admission.Response) { resp.Patches = []jsonpatch.Operation{own} }),
		},
		"own bytes": {
			Request: &create, Metadata: answering(func(resp *admission.Response) { resp.Patch = []byte("[]") }),
			ExpectedResponse: admission.Response{
				AdmissionResponse: admissionv1.AdmissionResponse{Allowed: true, Patch: []byte("[]")},
			},
		},
		"own type": {
			Request: &create, Metadata: answering(func(resp *admission.Response) {
				resp.PatchType = new(admissionv1.PatchTypeJSONPatch)
			}),
			ExpectedResponse: admission.Response{
				AdmissionResponse: admissionv1.AdmissionResponse{Allowed: true, PatchType: new(admissionv1.PatchTypeJSONPatch)},
			},
		},
		// A DELETE request contains only the old object, and the server does not accept a patch.
		"delete": {
			Request: &remove, ExpectedResponse: allowing(), Metadata: admitting(func(_ context.Context, resource *plain) error {
				equal(t, "name", "test", resource.Name)
				hello(resource)
				return nil
			}),
		},
		// An object that cannot be decoded is denied.
		"no object": {
			Request: &unreadable, ExpectedResponse: denying("unexpected end of JSON input"),
			Metadata: admitting(func(context.Context, *plain) error { t.Error("the subreconciler was called"); return nil }),
		},
		// An object that cannot be encoded is denied.
		"marshal fails after": {
			Request: &create, Metadata: admitting(func(_ context.Context, resource *plain) error {
				resource.Spec.ErrOnMarshal = true
				return nil
			}),
			ExpectedResponse: denying(
				"json: error calling MarshalJSON for type fixture.ResourceSpec: unable to marshal on purpose",
			),
		},
	}.RunWithContext(t, scheme, plainFactory)
}

func TestAdmissionWebhookAdapter_HaltAllowsTheRequest(t *testing.T) {
	create := admissionRequest(admissionv1.Create, plainObject)
	halting := func(err error) map[string]any {
		return changes(func(r *plainAdapter) {
			r.Reconciler = reconcilers.Sequence[*plain]{
				&plainSync{Sync: func(_ context.Context, resource *plain) error { hello(resource); return err }},
				&plainSync{Sync: func(context.Context, *plain) error {
					t.Error("the subreconciler after the halt was called")
					return nil
				}},
			}
		})
	}
	rtesting.AdmissionWebhookTests{
		"halt": {
			Request: &create, Metadata: halting(reconcilers.ErrHaltSubReconcilers), ExpectedResponse: allowing(greeting),
		},
		"wrapped halt": {
			Request: &create, Metadata: halting(fmt.Errorf("enough: %w", reconcilers.ErrHaltSubReconcilers)),
			ExpectedResponse: allowing(greeting),
		},
	}.RunWithContext(t, scheme, plainFactory)
}

func TestAdmissionWebhookAdapter_Defaults(t *testing.T) {
	request := func(value string) *admission.Request {
		const object = `{"apiVersion":"fixture.trueup.dev/v1","kind":"Resource","metadata":{"name":"test"},"spec":{"fields":{"Defaulter":"%s"}}}`
		return new(admissionRequest(admissionv1.Create, fmt.Sprintf(object, value)))
	}
	labeled := []jsonpatch.Operation{
		{Operation: "add", Path: "/metadata/labels", Value: map[string]any{"new": "label"}},
		{Operation: "replace", Path: "/spec/fields/Defaulter", Value: "ran"},
	}
	rtesting.AdmissionWebhookTests{
		"only defaults": {Request: request("not yet"), ExpectedResponse: allowing()},
		"defaults and changes": {
			Request: request("not yet"), ExpectedResponse: allowing(labeled...),
			Metadata: changes(func(r *fixture.Resource) { r.Labels = map[string]string{"new": "label"} }),
		},
		"default is reverted": {
			Request: request("not yet"), ExpectedResponse: allowing(jsonpatch.Operation{
				Operation: "remove", Path: "/spec/fields",
			}),
			Metadata: changes(func(r *fixture.Resource) { r.Spec.Fields = nil }),
		},
		"failure": {
			Request: request("fail"), ExpectedResponse: denying(fixture.ErrDefault.Error()),
			Metadata: changes(func(*fixture.Resource) { t.Error("the subreconciler was called") }),
		},
	}.RunWithContext(t, scheme, func(
		t *testing.T, ctx context.Context, tc *rtesting.AdmissionWebhookTestCase, c reconcilers.Config,
	) (*admission.Webhook, error) {
		r := &adapter{Config: c, Reconciler: &syncReconciler{Sync: func(_ context.Context, resource *fixture.Resource) error {
			equal(t, "default", "ran", resource.Spec.Fields[fixture.DefaulterField])
			changed(resource, tc.Metadata)
			return nil
		}}}
		return r.BuildWithContext(ctx)
	})
}

func TestAdmissionWebhookAdapter_HandleWithoutAnHTTPServer(t *testing.T) {
	w := newWorld(t, newConfigMap("source"))
	var now time.Time
	r := &plainAdapter{Config: w.Config, Reconciler: reconcilers.Sequence[*plain]{
		&plainSync{Sync: func(ctx context.Context, _ *plain) error {
			reconcilers.StashValue(ctx, "value", "stashed")
			now = rtime.RetrieveNow(ctx)
			key := types.NamespacedName{Namespace: "default", Name: "source"}
			return reconcilers.RetrieveConfigOrDie(ctx).TrackAndGet(ctx, key, &corev1.ConfigMap{})
		}},
		&plainSync{Sync: func(ctx context.Context, resource *plain) error {
			value, _ := reconcilers.RetrieveValue(ctx, "value").(string)
			resource.Annotations = map[string]string{"value": value}
			equal(t, "request", testRequest, reconcilers.RetrieveRequest(ctx))
			_, isType := reconcilers.RetrieveResourceType(ctx).(*plain)
			_, isOriginal := reconcilers.RetrieveOriginalResourceType(ctx).(*plain)
			equal(t, "types", []bool{true, true}, []bool{isType, isOriginal})
			equal(t, "original config", true, reconcilers.RetrieveOriginalConfigOrDie(ctx) == w.Config)
			equal(t, "time of the request", now, rtime.RetrieveNow(ctx))
			return nil
		}},
	}}
	got := r.Handle(context.Background(), admissionRequest(admissionv1.Create, plainObject))
	equal(t, "allowed", true, got.Allowed)
	equal(
		t, "patches",
		[]jsonpatch.Operation{{Operation: "add", Path: "/metadata/annotations", Value: map[string]any{"value": "stashed"}}},
		got.Patches,
	)
	equal(
		t, "trace", []string{"track ConfigMap default/source for default/test", "get ConfigMap default/source"}, w.Trace(),
	)
}

func TestAdmissionWebhookAdapter_KeepsTheGivenContext(t *testing.T) {
	w, other := newWorld(t), newWorld(t)
	ctx := reconcilers.StashConfig(reconcilers.WithStash(context.Background()), other.Config)
	reconcilers.StashValue(ctx, "from", "outside")
	r := &plainAdapter{Config: w.Config, Reconciler: &plainSync{Sync: func(ctx context.Context, _ *plain) error {
		equal(t, "value", any("outside"), reconcilers.RetrieveValue(ctx, "from"))
		equal(t, "config is the one given", true, reconcilers.RetrieveConfigOrDie(ctx) == other.Config)
		equal(t, "request", testRequest, reconcilers.RetrieveRequest(ctx))
		return nil
	}}}
	equal(t, "allowed", true, r.Handle(ctx, admissionRequest(admissionv1.Create, plainObject)).Allowed)
}

func TestAdmissionWebhookAdapter_Hooks(t *testing.T) {
	type key struct{}
	order := []string{}
	req := admissionRequest(admissionv1.Create, plainObject)
	var response *admission.Response
	see := func(name string, ctx context.Context, got admission.Request, resp *admission.Response) {
		order = append(order, name)
		equal(t, "request in "+name, req, got)
		equal(t, "request on the context in "+name, req, reconcilers.RetrieveAdmissionRequest(ctx))
		if resp == nil || resp != reconcilers.RetrieveAdmissionResponse(ctx) || response != nil && resp != response {
			t.Errorf("the response in %s is a different one", name)
		}
		response = resp
	}
	r := &plainAdapter{
		BeforeHandle: func(ctx context.Context, req admission.Request, resp *admission.Response) context.Context {
			see("before", ctx, req, resp)
			equal(t, "response so far", admissionv1.AdmissionResponse{UID: "request-uid", Allowed: true}, resp.AdmissionResponse)
			return context.WithValue(ctx, key{}, "from before")
		},
		Reconciler: &plainSync{Sync: func(ctx context.Context, resource *plain) error {
			see("sync", ctx, reconcilers.RetrieveAdmissionRequest(ctx), reconcilers.RetrieveAdmissionResponse(ctx))
			equal(t, "value in Sync", any("from before"), ctx.Value(key{}))
			hello(resource)
			return nil
		}},
		AfterHandle: func(ctx context.Context, req admission.Request, resp *admission.Response) {
			see("after", ctx, req, resp)
			equal(t, "value in AfterHandle", any("from before"), ctx.Value(key{}))
			equal(t, "patches", 1, len(resp.Patches))
			resp.Warnings = []string{"from after"}
		},
	}
	got := r.Handle(context.Background(), req)
	equal(t, "order", []string{"before", "sync", "after"}, order)
	equal(t, "warnings", []string{"from after"}, got.Warnings)

	t.Run("a nil context is ignored", func(t *testing.T) {
		r := &plainAdapter{
			BeforeHandle: func(context.Context, admission.Request, *admission.Response) context.Context { return nil },
			Reconciler: &plainSync{Sync: func(ctx context.Context, _ *plain) error {
				equal(t, "request", req, reconcilers.RetrieveAdmissionRequest(ctx))
				return errQuiet
			}},
			AfterHandle: func(_ context.Context, _ admission.Request, resp *admission.Response) {
				equal(t, "allowed so far", false, resp.Allowed)
				resp.Allowed = true
			},
		}
		equal(t, "allowed", true, r.Handle(context.Background(), req).Allowed)
	})
}

// What does AddFinalizer say below an adapter without a Config?
func TestAdmissionWebhookAdapter_AddFinalizerWithoutConfig(t *testing.T) {
	var got error
	r := &plainAdapter{Reconciler: &plainSync{Sync: func(ctx context.Context, resource *plain) error {
		got = reconcilers.AddFinalizer(ctx, resource, "test-finalizer")
		return nil
	}}}
	r.Handle(context.Background(), admissionRequest(admissionv1.Create, plainObject))
	wantText(t, `adding finalizer "test-finalizer": the Config has no client, set Config of the AdmissionWebhookAdapter`, got)
}

func TestAdmissionWebhookAdapter_Validate(t *testing.T) {
	invalid := &plainSync{
		Name:           "x",
		SyncWithResult: func(context.Context, *plain) (reconcilers.Result, error) { return reconcilers.Result{}, nil },
	}
	invalid.Sync = func(context.Context, *plain) error { return nil }
	const why = `SyncReconciler "x" may not implement both Sync and SyncWithResult`
	const below = `AdmissionWebhookAdapter "ResourceNoStatusAdmissionWebhookAdapter" must have a valid Reconciler: Always must have a valid Always`
	for name, tc := range map[string]struct {
		adapter        *plainAdapter
		problems, deep []string
	}{
		"valid": {adapter: &plainAdapter{Reconciler: reconcilers.Sequence[*plain]{}}},
		"empty": {
			&plainAdapter{},
			[]string{`AdmissionWebhookAdapter "ResourceNoStatusAdmissionWebhookAdapter" must define Reconciler`},
			nil,
		},
		"named": {&plainAdapter{Name: "n"}, []string{`AdmissionWebhookAdapter "n" must define Reconciler`}, nil},
		"invalid nested reconciler": {
			&plainAdapter{Reconciler: reconcilers.Always[*plain]{invalid, nil, invalid}}, nil,
			[]string{
				below + `[0]: ` + why,
				`AdmissionWebhookAdapter "ResourceNoStatusAdmissionWebhookAdapter" must have a valid Reconciler: Always must not have a nil Always[1]`,
				below + `[2]: ` + why,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			log, lines := newLog(1)
			ctx := withLog(context.Background(), log)
			wantText(t, first(tc.problems), tc.adapter.Validate(ctx))
			deep := slices.Concat(tc.problems, tc.deep)
			wantText(t, first(deep), tc.adapter.Validate(validation.WithRecursive(ctx)))
			equal(t, "log lines", nil, lines.messages())

			webhook, err := tc.adapter.BuildWithContext(ctx)
			wantText(t, strings.Join(deep, "\n"), err)
			equal(t, "has a webhook", len(deep) == 0, webhook != nil)

			defer func() {
				failure, _ := recover().(error)
				wantText(t, strings.Join(deep, "\n"), failure)
			}()
			equal(t, "handler", admission.Handler(tc.adapter), tc.adapter.Build().Handler)
		})
	}
	t.Run("an interface needs a type", func(t *testing.T) {
		r := &reconcilers.AdmissionWebhookAdapter[client.Object]{Name: "n", Reconciler: reconcilers.Sequence[client.Object]{}}
		wantText(t, `AdmissionWebhookAdapter "n" must define Type`, r.Validate(context.Background()))
		r = &reconcilers.AdmissionWebhookAdapter[client.Object]{
			Type: &fixture.Resource{}, Reconciler: reconcilers.Sequence[client.Object]{},
		}
		wantText(t, "", r.Validate(context.Background()))
	})
	t.Run("nested reconcilers find the config", func(t *testing.T) {
		w := newWorld(t)
		found := false
		r := &adapter{Config: w.Config, Reconciler: inspector{validate: func(ctx context.Context) error {
			found = reconcilers.RetrieveConfigOrDie(ctx) == w.Config &&
				reconcilers.RetrieveOriginalConfigOrDie(ctx) == w.Config &&
				reconcilers.RetrieveResourceType(ctx) != nil && reconcilers.RetrieveOriginalResourceType(ctx) != nil
			return nil
		}}}
		wantErr(t, nil, r.Validate(validation.WithRecursive(context.Background())))
		equal(t, "all found", true, found)
	})
}

func TestAdmissionWebhookAdapter_OverHTTP(t *testing.T) {
	w := newWorld(t)
	log, lines := newLog(0)
	var served *http.Request
	r := &plainAdapter{Config: w.Config, Reconciler: reconcilers.Sequence[*plain]{
		&plainSync{Sync: func(ctx context.Context, resource *plain) error {
			if got := reconcilers.RetrieveHTTPRequest(ctx); got == nil || got != served {
				t.Error("the HTTP request is a different one")
			}
			equal(t, "config", true, reconcilers.RetrieveConfigOrDie(ctx) == w.Config)
			equal(t, "stash is empty", false, reconcilers.HasValue(ctx, "value"))
			reconcilers.StashValue(ctx, "value", "of this request")
			if resource.Name == "bad" {
				return errQuiet
			}
			hello(resource)
			return nil
		}},
	}}
	webhook, err := r.BuildWithContext(context.Background())
	wantErr(t, nil, err)
	prepare := webhook.WithContextFunc
	webhook.WithContextFunc = func(ctx context.Context, req *http.Request) context.Context {
		served = req
		ctx = prepare(crlog.IntoContext(ctx, log), req)
		equal(t, "context has a stash", true, stash.Configured(ctx))
		crlog.FromContext(ctx).Info("prepared")
		return ctx
	}
	review := func(object string) *admissionv1.AdmissionResponse {
		t.Helper()
		request := admissionRequest(admissionv1.Create, object)
		body, err := json.Marshal(admissionv1.AdmissionReview{
			TypeMeta: metav1.TypeMeta{
				APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview",
			}, Request: &request.AdmissionRequest,
		})
		wantErr(t, nil, err)
		recorder := httptest.NewRecorder()
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mutate", strings.NewReader(string(body)))
		req.Header.Set("Content-Type", "application/json")
		webhook.ServeHTTP(recorder, req)
		answer := admissionv1.AdmissionReview{}
		wantErr(t, nil, json.Unmarshal(recorder.Body.Bytes(), &answer))
		if answer.Response == nil {
			t.Fatalf("no response: %s", recorder.Body)
		}
		return answer.Response
	}

	for range 2 {
		got := review(plainObject)
		equal(t, "allowed", true, got.Allowed)
		equal(t, "UID", "request-uid", string(got.UID))
		equal(t, "patch", `[{"op":"add","path":"/spec/fields","value":{"hello":"world"}}]`, string(got.Patch))
	}
	denied := review(strings.ReplaceAll(plainObject, `"name":"test"`, `"name":"bad"`))
	equal(t, "allowed", false, denied.Allowed)
	equal(t, "code", int32(http.StatusInternalServerError), denied.Result.Code)
	equal(t, "message", errQuiet.Error(), denied.Result.Message)
	contains(t, lines.all(),
		`controller-runtime.webhook.webhooks/ResourceNoStatusAdmissionWebhookAdapter "level"=0 "msg"="prepared" "webhook"="/mutate"`)
}

func TestWebhookContext(t *testing.T) {
	ctx := context.Background()
	equal(t, "no admission request", admission.Request{}, reconcilers.RetrieveAdmissionRequest(ctx))
	equal(t, "no admission response", nil, reconcilers.RetrieveAdmissionResponse(ctx))
	if req := reconcilers.RetrieveHTTPRequest(ctx); req != nil {
		t.Errorf("an empty context has an HTTP request: %v", req)
	}

	admit, resp := admissionRequest(admissionv1.Create, plainObject), &admission.Response{}
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
	ctx = reconcilers.StashAdmissionRequest(ctx, admit)
	ctx = reconcilers.StashAdmissionResponse(ctx, resp)
	ctx = reconcilers.StashHTTPRequest(ctx, req)
	equal(t, "admission request", admit, reconcilers.RetrieveAdmissionRequest(ctx))
	if reconcilers.RetrieveAdmissionResponse(ctx) != resp || reconcilers.RetrieveHTTPRequest(ctx) != req {
		t.Error("the retrieved request differs from the stashed request")
	}
}

func TestStashConfigured(t *testing.T) {
	equal(t, "without", false, stash.Configured(context.Background()))
	equal(t, "with", true, stash.Configured(stash.WithContext(context.Background())))
	equal(
		t, "derived", true,
		stash.Configured(reconcilers.StashConfig(stash.WithContext(context.Background()), reconcilers.Config{})),
	)
}

// Is a webhook without a Config refused if a reconciler below makes requests? It would deny each request.
func TestAdmissionWebhookAdapter_WhichReconcilersNeedAConfig(t *testing.T) {
	type adapter = reconcilers.AdmissionWebhookAdapter[*fixture.Resource]
	w := newWorld(t)
	child, set := newChildReconciler(w), newChildSetReconciler(w)
	elsewhere := func(r subReconciler) subReconciler {
		return &withConfig{Reconciler: r, Config: func(context.Context, reconcilers.Config) (reconcilers.Config, error) {
			return w.Config, nil
		}}
	}
	held := &withFinalizer{Finalizer: "test-finalizer", Reconciler: nothing()}
	const prefix, suffix = `AdmissionWebhookAdapter "a" must define Config: `, ` makes requests`
	for name, tc := range map[string]struct {
		below subReconciler
		want  string
	}{
		"WithFinalizer":             {held, `WithFinalizer "WithFinalizer"`},
		"ChildReconciler":           {sequence{nothing(), child}, `ChildReconciler "ConfigMapChildReconciler"`},
		"ChildSetReconciler":        {set, `ChildSetReconciler "ConfigMapChildSetReconciler"`},
		"Steps with a Finalizer":    {&steps{Finalizer: "f", Steps: []stepOf{{Name: "a", Reconciler: nothing()}}}, `Steps "Steps"`},
		"Prune":                     {&prune{Inventory: inventoryKey, Reconciler: nothing()}, `Prune "Prune"`},
		"SuppressTransientErrors":   {&suppress{Reconciler: nothing()}, `SuppressTransientErrors "SuppressTransientErrors"`},
		"SyncReconciler":            {nothing(), ""},
		"Steps without a finalizer": {&steps{Steps: []stepOf{{Name: "a", Reconciler: nothing()}}}, ""},
		"child below a WithConfig":  {elsewhere(child), ""},
		"the finalizer of the resource, below a WithConfig": {elsewhere(held), `WithFinalizer "WithFinalizer"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := (&adapter{Name: "a", Reconciler: tc.below}).BuildWithContext(t.Context())
			switch {
			case tc.want == "":
				wantErr(t, nil, err)
			case err == nil:
				t.Error("set-up returned no error")
			default:
				contains(t, err.Error(), prefix+tc.want+suffix)
			}
			_, err = (&adapter{Name: "a", Reconciler: tc.below, Config: w.Config}).BuildWithContext(t.Context())
			wantErr(t, nil, err)
		})
	}
}

func TestAdmissionWebhookAdapter_Log(t *testing.T) {
	for name, tc := range map[string]struct {
		object string
		err    error
		change func(*plain)
		want   []string
	}{
		"nothing": {object: plainObject},
		"mutate":  {object: plainObject, change: hello, want: []string{"mutating resource"}},
		"error": {
			object: plainObject, change: hello, err: errTest, want: []string{"unable to sync", "reconcile error"},
		},
		"quiet error":   {object: plainObject, change: hello, err: errQuiet},
		"durable error": {object: plainObject, err: errors.Join(errTest, reconcilers.ErrDurable)},
		"no object":     {object: " ", want: []string{"reconcile error"}},
		"marshal fails after": {
			object: plainObject, change: func(r *plain) { r.Spec.ErrOnMarshal = true }, want: []string{"reconcile error"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			log, lines := newLog(0)
			r := &plainAdapter{Reconciler: &plainSync{Sync: func(_ context.Context, resource *plain) error {
				if tc.change != nil {
					tc.change(resource)
				}
				return tc.err
			}}}
			r.Handle(withLog(context.Background(), log), admissionRequest(admissionv1.Create, tc.object))
			equal(t, "log", tc.want, lines.messages())
			if tc.err == errTest { //nolint:errorlint // the others are not logged
				contains(t, lines.all(), `"step"="ResourceNoStatusAdmissionWebhookAdapter.SyncReconciler"`)
			}
		})
	}
}

func TestAdmissionWebhookAdapter_DoesNotLogValues(t *testing.T) {
	const object = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"test"},"data":{"password":"b2xkLXNlY3JldA=="}}`
	for _, verbosity := range []int{0, 1, 5} {
		log, lines := newLog(verbosity)
		r := &reconcilers.AdmissionWebhookAdapter[*corev1.Secret]{Reconciler: &reconcilers.SyncReconciler[*corev1.Secret]{
			Sync: func(_ context.Context, secret *corev1.Secret) error {
				secret.Data["password"] = []byte("new-secret")
				secret.StringData = map[string]string{"more": "more-secret"}
				return nil
			},
		}}
		got := r.Handle(withLog(context.Background(), log), admissionRequest(admissionv1.Create, object))
		equal(t, "patches", 2, len(got.Patches))
		contains(t, lines.all(), `"paths"=[`)
		contains(t, lines.all(), `"add /stringData"`)
		contains(t, lines.all(), `"replace /data/password"`)
		for _, value := range []string{"old-secret", "new-secret", "more-secret"} {
			for _, spelling := range spellings(value) {
				lacks(t, lines.all(), spelling)
			}
		}
	}
}

func TestAdmissionWebhookAdapter_LogsTheStepOfAPanic(t *testing.T) {
	log, lines := newLog(0)
	defer func() {
		equal(t, "panic", any("on purpose"), recover())
		contains(
			t, lines.all(), `"msg"="reconciler panicked" "step"="ResourceNoStatusAdmissionWebhookAdapter.0.SyncReconciler"`,
		)
	}()
	r := &plainAdapter{Reconciler: reconcilers.Sequence[*plain]{
		&plainSync{Sync: func(context.Context, *plain) error { panic("on purpose") }},
	}}
	r.Handle(withLog(context.Background(), log), admissionRequest(admissionv1.Create, plainObject))
}
