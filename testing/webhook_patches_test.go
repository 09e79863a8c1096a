// SPDX-License-Identifier: Apache-2.0

package testing_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
)

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
