// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"encoding/json"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
)

const webhookManifests = `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: mutating}
webhooks:
- name: mutate.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  clientConfig: {service: {name: webhook-service, namespace: system, path: /mutate}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: validating}
webhooks:
- name: validate.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  clientConfig: {service: {name: webhook-service, namespace: system, path: /validate}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  namespaceSelector: {matchExpressions: [{key: never, operator: DoesNotExist}]}
`

// serveWebhooks serves the webhooks of the manifests and conversions until the test ends: /mutate adds a label with the
// name of the test, /validate rejects objects named "refused", /convert writes the original version of an object into
// spec.from.
func serveWebhooks(t *testing.T, w *Webhooks) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/mutate", admit(t, func(_ *corev1.ConfigMap, response *admissionv1.AdmissionResponse) {
		patch, err := json.Marshal(
			[]map[string]any{
				{"op": "add", "path": "/metadata/labels", "value": map[string]string{"by": strings.ReplaceAll(t.Name(), "/", ".")}},
			},
		)
		if err != nil {
			t.Error(err)
		}
		response.Patch, response.PatchType = patch, new(admissionv1.PatchTypeJSONPatch)
	}))
	mux.HandleFunc("/validate", admit(t, func(object *corev1.ConfigMap, response *admissionv1.AdmissionResponse) {
		if object.Name == "refused" {
			response.Allowed, response.Result = false, &metav1.Status{Code: http.StatusForbidden, Message: "not this one"}
		}
	}))
	mux.HandleFunc("/convert", func(out http.ResponseWriter, in *http.Request) {
		var review apiextensionsv1.ConversionReview
		if err := json.NewDecoder(in.Body).Decode(&review); err != nil {
			t.Error(err)
			return
		}
		review.Response = &apiextensionsv1.ConversionResponse{
			UID:    review.Request.UID,
			Result: metav1.Status{Status: metav1.StatusSuccess},
		}
		for _, raw := range review.Request.Objects {
			object := &unstructured.Unstructured{}
			if err := object.UnmarshalJSON(raw.Raw); err != nil {
				t.Error(err)
				return
			}
			if err := unstructured.SetNestedField(object.Object, object.GetAPIVersion(), "spec", "from"); err != nil {
				t.Error(err)
			}
			object.SetAPIVersion(review.Request.DesiredAPIVersion)
			review.Response.ConvertedObjects = append(review.Response.ConvertedObjects, runtime.RawExtension{Object: object})
		}
		review.Request = nil
		answer(t, out, review)
	})
	server := &http.Server{Addr: w.address(), Handler: mux, ReadHeaderTimeout: time.Minute}
	ended := make(chan error, 1)
	go func() {
		ended <- server.ListenAndServeTLS(filepath.Join(w.CertDir, "tls.crt"), filepath.Join(w.CertDir, "tls.key"))
	}()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	if err := w.WaitUntilServed(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func admit(t *testing.T, decide func(*corev1.ConfigMap, *admissionv1.AdmissionResponse)) http.HandlerFunc {
	return func(out http.ResponseWriter, in *http.Request) {
		var review admissionv1.AdmissionReview
		var object corev1.ConfigMap
		if err := json.NewDecoder(in.Body).Decode(&review); err != nil {
			t.Error(err)
			return
		}
		if err := json.Unmarshal(review.Request.Object.Raw, &object); err != nil {
			t.Error(err)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		decide(&object, review.Response)
		review.Request = nil
		answer(t, out, review)
	}
}

func answer(t *testing.T, out http.ResponseWriter, review any) {
	out.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(out).Encode(review); err != nil {
		t.Error(err)
	}
}

func configMapsIn(t *testing.T, e *Env, namespace string) dynamic.ResourceInterface {
	t.Helper()
	return dynamicClient(t, e.Sandbox).Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(namespace)
}

func newConfigMap(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{
		Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}},
	}
}
