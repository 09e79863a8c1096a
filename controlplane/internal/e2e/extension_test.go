// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestWebhookByURLIsCalled(t *testing.T) {
	t.Parallel()
	p := sharedProcess(t)
	namespace := p.namespace(t)
	var calls atomic.Int32
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: review.Request.Name != "denied"}
		if !review.Response.Allowed {
			review.Response.Result = &metav1.Status{Message: "not with this name"}
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(review); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	fail, none, hook := admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNone, server.URL+"/validate"
	configurations := p.client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	_, err := configurations.Create(t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "names.example.com",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL:      &hook,
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
			Rules: []admissionregistrationv1.RuleWithOperations{
				{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule: admissionregistrationv1.Rule{
						APIGroups:   []string{""},
						APIVersions: []string{"v1"},
						Resources:   []string{"configmaps"},
					},
				},
			},
			FailurePolicy: &fail, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer configurations.Delete(context.WithoutCancel(t.Context()), namespace, metav1.DeleteOptions{})
	configMaps := p.client.CoreV1().ConfigMaps(namespace)
	// Repeat a dry run until the API server uses the configuration.
	eventually(t, waitLimit, "webhook denies", func(ctx context.Context) error {
		_, err := configMaps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "denied"}},
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil {
			return errors.New("allowed")
		}
		if !strings.Contains(err.Error(), `admission webhook "names.example.com" denied the request: not with this name`) {
			return err
		}
		return nil
	})
	if _, err := configMaps.Create(
		t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "allowed"}}, metav1.CreateOptions{},
	); err != nil {
		t.Errorf("another name: %v, want it allowed", err)
	}
	if calls.Load() < 2 {
		t.Errorf("calls = %d, want at least 2", calls.Load())
	}
}

// An aggregated API on the loopback interface is reached through a service with an external name.
func TestAggregatedAPIIsReached(t *testing.T) {
	t.Parallel()
	p := sharedProcess(t)
	namespace := p.namespace(t)
	const group = "aggregated.example.com"
	var caller atomic.Value
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller.Store(r.Header.Get("X-Remote-User"))
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":%q,"resources":[]}`, group+"/v1")
	}))
	defer server.Close()
	parsed, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseInt(parsed.Port(), 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.client.CoreV1().Services(namespace).Create(
		t.Context(),
		&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeExternalName, ExternalName: "localhost",
		}},
		metav1.CreateOptions{},
	)
	if err != nil {
		t.Fatal(err)
	}
	services := p.dynamic.Resource(
		schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"},
	)
	_, err = services.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1",
		"kind":       "APIService",
		"metadata":   map[string]any{"name": "v1." + group},
		"spec": map[string]any{
			"group": group, "version": "v1", "groupPriorityMinimum": int64(100), "versionPriority": int64(10),
			"insecureSkipTLSVerify": true,
			"service":               map[string]any{"namespace": namespace, "name": "test", "port": port},
		},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer services.Delete(context.WithoutCancel(t.Context()), "v1."+group, metav1.DeleteOptions{})
	eventually(t, waitLimit, "aggregated API answers", func(ctx context.Context) error {
		body, err := p.client.Discovery().RESTClient().Get().AbsPath("/apis/" + group + "/v1").Do(ctx).Raw()
		if err != nil {
			return err
		}
		if !strings.Contains(string(body), "APIResourceList") {
			return fmt.Errorf("body %q", body)
		}
		return nil
	})
	eventually(t, waitLimit, "caller's name passed on", func(ctx context.Context) error {
		if _, err := p.client.Discovery().RESTClient().Get().AbsPath("/apis/" + group + "/v1").Do(ctx).Raw(); err != nil {
			return err
		}
		if got := caller.Load(); got != "trueup-admin" {
			return fmt.Errorf("caller %q, want trueup-admin", got)
		}
		return nil
	})
}
