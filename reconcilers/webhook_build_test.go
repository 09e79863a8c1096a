// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	"trueup.dev/stash"
	"trueup.dev/validation"
)

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
