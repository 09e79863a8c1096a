// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"trueup.dev/internal/fixture"
	"trueup.dev/reconcilers"
	rtime "trueup.dev/time"
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

func TestAdmissionWebhookAdapter_Handle(t *testing.T) {
	type result = reconcilers.Result
	patch := []jsonpatch.Operation{{Operation: "add", Path: "/spec/fields", Value: map[string]any{"hello": "world"}}}
	own := []jsonpatch.Operation{{Operation: "add", Path: "/own", Value: true}}
	forbidden := &metav1.Status{Code: http.StatusForbidden, Message: "no"}
	failed := func(message string) *metav1.Status {
		return &metav1.Status{Code: http.StatusInternalServerError, Message: message}
	}
	response := func(allowed bool, result *metav1.Status, patches ...jsonpatch.Operation) admission.Response {
		return admission.Response{
			AdmissionResponse: admissionv1.AdmissionResponse{UID: "request-uid", Allowed: allowed, Result: result}, Patches: patches,
		}
	}
	for name, tc := range map[string]struct {
		reason    string
		operation admissionv1.Operation
		object    string
		sync      func(ctx context.Context, resource *plain) error
		want      admission.Response
		log       []string
	}{
		"nothing": {reason: "a request is allowed", want: response(true, nil)},
		"mutate": {
			reason: "what changes becomes a patch",
			sync:   func(_ context.Context, resource *plain) error { hello(resource); return nil },
			want:   response(true, nil, patch...), log: []string{"mutating resource"},
		},
		"update": {
			reason: "an update is like a create", operation: admissionv1.Update,
			sync: func(_ context.Context, resource *plain) error { hello(resource); return nil },
			want: response(true, nil, patch...), log: []string{"mutating resource"},
		},
		"error": {
			reason: "an error denies the request, and nothing is changed",
			sync:   func(_ context.Context, resource *plain) error { hello(resource); return errTest },
			want:   response(false, failed("failure of the test")), log: []string{"unable to sync", "reconcile error"},
		},
		"quiet error": {
			reason: "a quiet error denies the request quietly",
			sync:   func(context.Context, *plain) error { return errQuiet },
			want:   response(false, failed(errQuiet.Error())),
		},
		"durable error": {
			reason: "a durable error halts, but it is an error",
			sync:   func(context.Context, *plain) error { return errors.Join(errTest, reconcilers.ErrDurable) },
			want:   response(false, failed(errors.Join(errTest, reconcilers.ErrDurable).Error())),
		},
		"deny": {
			reason: "a reconciler may deny the request without an error",
			sync: func(ctx context.Context, _ *plain) error {
				resp := reconcilers.RetrieveAdmissionResponse(ctx)
				resp.Allowed, resp.Result = false, forbidden
				return nil
			},
			want: response(false, forbidden),
		},
		"error with a result": {
			reason: "a result that is there stays",
			sync: func(ctx context.Context, _ *plain) error {
				reconcilers.RetrieveAdmissionResponse(ctx).Result = forbidden
				return errQuiet
			},
			want: response(false, forbidden),
		},
		"own patches": {
			reason: "a reconciler may make the patch itself",
			sync: func(ctx context.Context, resource *plain) error {
				reconcilers.RetrieveAdmissionResponse(ctx).Patches = own
				hello(resource)
				return nil
			},
			want: response(true, nil, own...),
		},
		"own bytes": {
			reason: "a reconciler may make the patch itself",
			sync: func(ctx context.Context, resource *plain) error {
				reconcilers.RetrieveAdmissionResponse(ctx).Patch = []byte("[]")
				hello(resource)
				return nil
			},
			want: admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{UID: "request-uid", Allowed: true, Patch: []byte("[]")}},
		},
		"own type": {
			reason: "a reconciler may make the patch itself",
			sync: func(ctx context.Context, resource *plain) error {
				reconcilers.RetrieveAdmissionResponse(ctx).PatchType = new(admissionv1.PatchTypeJSONPatch)
				hello(resource)
				return nil
			},
			want: admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{
				UID: "request-uid", Allowed: true, PatchType: new(admissionv1.PatchTypeJSONPatch),
			}},
		},
		"delete": {
			reason: "of a resource that goes there is only the old object", operation: admissionv1.Delete,
			sync: func(_ context.Context, resource *plain) error {
				equal(t, "name", "test", resource.Name)
				return nil
			},
			want: response(true, nil),
		},
		"no object": {
			reason: "what cannot be read is denied", object: " ",
			sync: func(context.Context, *plain) error { t.Error("the sub reconciler was called"); return nil },
			want: response(false, failed("unexpected end of JSON input")), log: []string{"reconcile error"},
		},
		"not to marshal after": {
			reason: "what cannot be sent back is denied",
			sync:   func(_ context.Context, resource *plain) error { resource.Spec.ErrOnMarshal = true; return nil },
			want:   response(false, failed("json: error calling MarshalJSON for type fixture.ResourceSpec: unable to marshal on purpose")),
			log:    []string{"reconcile error"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.operation == "" {
				tc.operation = admissionv1.Create
			}
			if tc.object == "" {
				tc.object = plainObject
			}
			if tc.sync == nil {
				tc.sync = func(context.Context, *plain) error { return nil }
			}
			log, lines := newLog(0)
			r := &plainAdapter{Config: newWorld(t).Config, Reconciler: &plainSync{
				SyncWithResult: func(ctx context.Context, resource *plain) (result, error) { return requeue, tc.sync(ctx, resource) },
			}}
			got := r.Handle(withLog(context.Background(), log), admissionRequest(tc.operation, tc.object))
			equal(t, "response, for "+tc.reason, tc.want, got)
			equal(t, "log", tc.log, lines.messages())
		})
	}
}

func TestDefect08_HaltAllowsTheRequest(t *testing.T) {
	for name, err := range map[string]error{
		"halt":         reconcilers.ErrHaltSubReconcilers,
		"halt because": fmt.Errorf("enough: %w", reconcilers.ErrHaltSubReconcilers),
	} {
		t.Run(name, func(t *testing.T) {
			r := &plainAdapter{Reconciler: reconcilers.Sequence[*plain]{
				&plainSync{Sync: func(_ context.Context, resource *plain) error { hello(resource); return err }},
				&plainSync{Sync: func(context.Context, *plain) error { t.Error("it has not halted"); return nil }},
			}}
			got := r.Handle(context.Background(), admissionRequest(admissionv1.Create, plainObject))
			equal(t, "allowed", true, got.Allowed)
			equal(t, "result", nil, got.Result)
			equal(t, "patches", []jsonpatch.Operation{{Operation: "add", Path: "/spec/fields", Value: map[string]any{"hello": "world"}}}, got.Patches)
		})
	}
}

func TestAdmissionWebhookAdapter_Defaults(t *testing.T) {
	const object = `{"apiVersion":"fixture.trueup.dev/v1","kind":"Resource","metadata":{"name":"test"},"spec":{"fields":{"Defaulter":"%s"}}}`
	handle := func(value string, change func(*fixture.Resource)) admission.Response {
		r := &adapter{Reconciler: &syncReconciler{Sync: func(_ context.Context, resource *fixture.Resource) error {
			equal(t, "default", "ran", resource.Spec.Fields[fixture.DefaulterField])
			change(resource)
			return nil
		}}}
		return r.Handle(context.Background(), admissionRequest(admissionv1.Create, fmt.Sprintf(object, value)))
	}
	equal(t, "patches for defaults alone", nil, handle("not yet", func(*fixture.Resource) {}).Patches)
	equal(t, "patches for defaults and more", []jsonpatch.Operation{
		{Operation: "add", Path: "/metadata/labels", Value: map[string]any{"new": "label"}},
		{Operation: "replace", Path: "/spec/fields/Defaulter", Value: "ran"},
	}, sorted(handle("not yet", func(r *fixture.Resource) { r.Labels = map[string]string{"new": "label"} }).Patches))
	equal(t, "patches for taking a default back", []jsonpatch.Operation{{Operation: "remove", Path: "/spec/fields"}},
		handle("not yet", func(r *fixture.Resource) { r.Spec.Fields = nil }).Patches)

	denied := handle("fail", func(*fixture.Resource) { t.Error("the sub reconciler was called") })
	equal(t, "allowed", false, denied.Allowed)
	equal(t, "result", &metav1.Status{Code: http.StatusInternalServerError, Message: fixture.ErrDefault.Error()}, denied.Result)
}

func TestDefect08_HandleWithoutAnHTTPServer(t *testing.T) {
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
			equal(t, "the time is that of the request", now, rtime.RetrieveNow(ctx))
			return nil
		}},
	}}
	got := r.Handle(context.Background(), admissionRequest(admissionv1.Create, plainObject))
	equal(t, "allowed", true, got.Allowed)
	equal(t, "patches", []jsonpatch.Operation{{Operation: "add", Path: "/metadata/annotations", Value: map[string]any{"value": "stashed"}}}, got.Patches)
	equal(t, "trace", []string{"track ConfigMap default/source for default/test", "get ConfigMap default/source"}, w.Trace())
}

func TestAdmissionWebhookAdapter_KeepsTheContextItIsGiven(t *testing.T) {
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
			t.Errorf("the response is another one in %s", name)
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

	t.Run("a nil context is no context", func(t *testing.T) {
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

func TestDefect08_LogsHoldNoValues(t *testing.T) {
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

func TestAdmissionWebhookAdapter_LogsWhereItPanics(t *testing.T) {
	log, lines := newLog(0)
	defer func() {
		equal(t, "panic", any("on purpose"), recover())
		contains(t, lines.all(), `"msg"="reconciler panicked" "step"="ResourceNoStatusAdmissionWebhookAdapter.0.SyncReconciler"`)
	}()
	r := &plainAdapter{Reconciler: reconcilers.Sequence[*plain]{
		&plainSync{Sync: func(context.Context, *plain) error { panic("on purpose") }},
	}}
	r.Handle(withLog(context.Background(), log), admissionRequest(admissionv1.Create, plainObject))
}
