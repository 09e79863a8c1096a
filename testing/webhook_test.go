// SPDX-License-Identifier: Apache-2.0

package testing_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
)

type handler = admission.HandlerFunc

func handling(h handler) rtesting.AdmissionWebhookFactoryWithContext {
	return func(
		*testing.T, context.Context, *rtesting.AdmissionWebhookTestCase, reconcilers.Config,
	) (*admission.Webhook, error) {
		return &admission.Webhook{Handler: h}, nil
	}
}

func TestAdmissionWebhookTestCase(t *testing.T) {
	s := &story{t: t}
	tc := &rtesting.AdmissionWebhookTestCase{
		Request: &admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{UID: "a-b-c"}},
		Now:     noon,
		Prepare: func(_ *testing.T, ctx context.Context, tc *rtesting.AdmissionWebhookTestCase) (context.Context, error) {
			s.tell(ctx, "prepare", tc.Metadata)
			tc.Metadata["by"] = "prepare"
			tc.GivenObjects = []client.Object{configMap("given")}
			tc.ExpectCreates = []client.Object{configMap("made")}
			tc.CleanUp = func(_ *testing.T, ctx context.Context, tc *rtesting.AdmissionWebhookTestCase) error {
				s.tell(ctx, "clean up", tc.Metadata)
				return nil
			}
			return prepared(ctx), nil
		},
		ExpectedResponse: admission.Allowed(""),
	}
	tc.RunWithContext(t, scheme, func(
		_ *testing.T, ctx context.Context, tc *rtesting.AdmissionWebhookTestCase, c reconcilers.Config,
	) (*admission.Webhook, error) {
		s.tell(ctx, "factory", tc.Metadata)
		return &admission.Webhook{Handler: handler(func(ctx context.Context, req admission.Request) admission.Response {
			s.tell(ctx, "handle "+string(req.UID), tc.Metadata)
			if err := work(ctx, c); err != nil {
				return admission.Errored(http.StatusTeapot, err)
			}
			return admission.Allowed("")
		})}, nil
	})
	want := []string{
		"prepare: prepared=false stash=true recursive=true metadata=map[]",
		"factory: prepared=true stash=true recursive=true metadata=map[by:prepare]",
		"handle a-b-c: prepared=true stash=true recursive=true metadata=map[by:prepare]",
		"clean up: prepared=true stash=true recursive=true metadata=map[by:prepare]",
	}
	if diff := cmp.Diff(want, s.lines); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// What every response has need not be expected, and the expectation of the table is left alone.
func TestAdmissionWebhookTestCaseResponse(t *testing.T) {
	expected := admission.Response{
		AdmissionResponse: admissionv1.AdmissionResponse{Allowed: true, Result: &metav1.Status{Message: "labeled"}},
		Patches:           []jsonpatch.Operation{jsonpatch.NewOperation("add", "/metadata/labels", map[string]any{"a": "b"})},
	}
	given := expected.DeepCopy()
	tc := &rtesting.AdmissionWebhookTestCase{
		Request: &admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
			UID: "a-b-c", Object: runtime.RawExtension{Raw: []byte(`{"metadata":{}}`)},
		}},
		ExpectedResponse: expected,
	}
	tc.RunWithContext(t, scheme, handling(func(_ context.Context, req admission.Request) admission.Response {
		copy(req.Object.Raw, "overwritten by the handler")
		resp := admission.Allowed("")
		resp.Result = &metav1.Status{Message: "labeled"}
		resp.Patches = []jsonpatch.Operation{jsonpatch.NewOperation("add", "/metadata/labels", map[string]any{"a": "b"})}
		return resp
	}))
	if diff := cmp.Diff(given, &expected.AdmissionResponse); diff != "" {
		t.Errorf("the response of the table was changed (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(`{"metadata":{}}`, string(tc.Request.Object.Raw)); diff != "" {
		t.Errorf("the request of the table was changed (-before +after):\n%s", diff)
	}
}

func TestAdmissionWebhookTestCaseHTTPRequest(t *testing.T) {
	tests := map[string]struct {
		given *http.Request
		want  string
	}{
		"Default": {want: "/"},
		"Given":   {given: &http.Request{URL: &url.URL{Path: "/mutate"}}, want: "/mutate"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			type pathKey struct{}
			tc := &rtesting.AdmissionWebhookTestCase{
				Request: &admission.Request{}, HTTPRequest: tt.given, ExpectedResponse: admission.Allowed(tt.want),
			}
			tc.RunWithContext(t, scheme, func(
				*testing.T, context.Context, *rtesting.AdmissionWebhookTestCase, reconcilers.Config,
			) (*admission.Webhook, error) {
				return &admission.Webhook{
					WithContextFunc: func(ctx context.Context, r *http.Request) context.Context {
						return context.WithValue(ctx, pathKey{}, r.URL.Path)
					},
					Handler: handler(func(ctx context.Context, _ admission.Request) admission.Response {
						return admission.Allowed(ctx.Value(pathKey{}).(string))
					}),
				}, nil
			})
		})
	}
}

func TestAdmissionWebhookTestCaseShouldPanic(t *testing.T) {
	tests := map[string]*bool{"RecoveryLeftOpen": nil, "NoRecovery": new(false)}
	for name, recoverPanic := range tests {
		t.Run(name, func(t *testing.T) {
			tc := &rtesting.AdmissionWebhookTestCase{Request: &admission.Request{}, ShouldPanic: true}
			tc.RunWithContext(t, scheme, func(
				*testing.T, context.Context, *rtesting.AdmissionWebhookTestCase, reconcilers.Config,
			) (*admission.Webhook, error) {
				return &admission.Webhook{
					RecoverPanic: recoverPanic,
					Handler:      handler(func(context.Context, admission.Request) admission.Response { panic("on purpose") }),
				}, nil
			})
		})
	}
}

// An adapter of subreconcilers is what most authors test. What they leave out of the expectation is the same as for
// other webhooks.
func TestAdmissionWebhookTestCaseAdapter(t *testing.T) {
	tests := rtesting.AdmissionWebhookTests{
		"adds a label": {
			Request: &admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				UID: "a-b-c", Operation: admissionv1.Create,
				Object: runtime.RawExtension{Raw: []byte(`{
					"apiVersion": "fixture.trueup.dev/v1", "kind": "Resource", "metadata": {"namespace": "default", "name": "resource"}
				}`)},
			}},
			ExpectedResponse: admission.Response{
				AdmissionResponse: admissionv1.AdmissionResponse{Allowed: true},
				Patches: []jsonpatch.Operation{
					jsonpatch.NewOperation("add", "/metadata/labels", map[string]any{changed: "true"}),
					jsonpatch.NewOperation("add", "/spec", map[string]any{"fields": map[string]any{fixture.DefaulterField: "ran"}}),
				},
			},
		},
	}
	adapter := func(c reconcilers.Config) *reconcilers.AdmissionWebhookAdapter[*fixture.Resource] {
		return &reconcilers.AdmissionWebhookAdapter[*fixture.Resource]{
			Reconciler: &reconcilers.SyncReconciler[*fixture.Resource]{Sync: label[*fixture.Resource]},
			Config:     c,
		}
	}
	t.Run("RunWithContext", func(t *testing.T) {
		tests.RunWithContext(t, scheme, func(
			_ *testing.T, ctx context.Context, _ *rtesting.AdmissionWebhookTestCase, c reconcilers.Config,
		) (*admission.Webhook, error) {
			return adapter(c).BuildWithContext(ctx)
		})
	})
	t.Run("Run", func(t *testing.T) {
		//nolint:staticcheck // deprecated, but there
		tests.Run(t, scheme, func(
			_ *testing.T, _ *rtesting.AdmissionWebhookTestCase, c reconcilers.Config,
		) *admission.Webhook {
			return adapter(c).Build()
		})
	})
}

// plainDiffer compares responses as a Differ of users does: with nothing but cmp.
type plainDiffer struct{ rtesting.Differ }

func (plainDiffer) WebhookResponse(expected, actual admission.Response) string {
	return cmp.Diff(expected, actual)
}

const patchedPod = `{"metadata":{"name":"test"},"spec":{"containers":[{"name":"app"}]}}`

// bindSecret changes several fields of one container and of the pod.
func bindSecret(_ context.Context, pod *corev1.Pod) error {
	pod.Labels = map[string]string{"bound": "true"}
	pod.Spec.Volumes = []corev1.Volume{{Name: "binding", VolumeSource: corev1.VolumeSource{
		Projected: &corev1.ProjectedVolumeSource{DefaultMode: new(int32(420))},
	}}}
	app := &pod.Spec.Containers[0]
	app.VolumeMounts = []corev1.VolumeMount{{Name: "binding", MountPath: "/bindings"}}
	app.Env = []corev1.EnvVar{{Name: "ROOT", Value: "/bindings"}}
	app.Image = "app:2"
	pod.Spec.ActiveDeadlineSeconds = new(int64(9007199254740993))
	return nil
}

// What tables expect is written as encoding/json decodes it, or with the author's own Go types, in the order that came
// to the author's mind.
func TestAdmissionWebhookTestCase_ComparesPatchesAsJSON(t *testing.T) {
	op := jsonpatch.NewOperation
	env, image := "/spec/containers/0/env", "/spec/containers/0/image"
	variable := map[string]any{"name": "ROOT", "value": "/bindings"}
	mount := map[string]any{"name": "binding", "mountPath": "/bindings"}
	decoded := map[string]any{"name": "binding", "projected": map[string]any{"sources": nil, "defaultMode": float64(420)}}
	with := func(volume, deadline any) []jsonpatch.Operation {
		return []jsonpatch.Operation{
			op("add", image, "app:2"),
			op("add", env, []any{variable}),
			op("add", "/spec/containers/0/volumeMounts", []any{mount}),
			op("add", "/spec/volumes", []any{volume}),
			op("add", "/spec/activeDeadlineSeconds", deadline),
			op("add", "/metadata/labels", map[string]string{"bound": "true"}),
		}
	}
	withMode := func(mode any) map[string]any {
		volume := maps.Clone(decoded)
		volume["projected"] = map[string]any{"sources": nil, "defaultMode": mode}
		return volume
	}
	const deadline = int64(9007199254740993)
	backwards := with(decoded, deadline)
	slices.Reverse(backwards)
	for name, expected := range map[string][]jsonpatch.Operation{
		"decoded":       with(decoded, deadline),
		"another order": backwards,
		"integers":      with(withMode(420), deadline),
		"json.Number":   with(withMode(json.Number("420")), json.Number("9007199254740993")),
		"structs": with(corev1.Volume{Name: "binding", VolumeSource: corev1.VolumeSource{
			Projected: &corev1.ProjectedVolumeSource{DefaultMode: new(int32(420))},
		}}, deadline),
	} {
		t.Run(name, func(t *testing.T) {
			for range 10 { // jsonpatch goes through maps
				tc := rtesting.AdmissionWebhookTestCase{
					Differ: plainDiffer{rtesting.DefaultDiffer},
					Request: &admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
						UID: "a-b-c", Object: runtime.RawExtension{Raw: []byte(patchedPod)},
					}},
					ExpectedResponse: admission.Response{
						AdmissionResponse: admissionv1.AdmissionResponse{Allowed: true}, Patches: expected,
					},
				}
				tc.RunWithContext(t, scheme, bindingWebhook)
			}
		})
	}
}

func bindingWebhook(
	_ *testing.T, ctx context.Context, _ *rtesting.AdmissionWebhookTestCase, c reconcilers.Config,
) (*admission.Webhook, error) {
	return (&reconcilers.AdmissionWebhookAdapter[*corev1.Pod]{
		Reconciler: &reconcilers.SyncReconciler[*corev1.Pod]{Sync: bindSecret}, Config: c,
	}).BuildWithContext(ctx)
}
