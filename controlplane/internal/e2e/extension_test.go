// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/tls"
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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/cert"
)

// nameServer denies objects with the name "denied".
func nameServer(t *testing.T, calls *atomic.Int32) *httptest.Server {
	t.Helper()
	return httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
}

// installWebhook registers a webhook for ConfigMaps of a namespace until the test ends.
func (p *process) installWebhook(
	t *testing.T, namespace string, client admissionregistrationv1.WebhookClientConfig,
) {
	t.Helper()
	fail, none := admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNone
	configurations := p.client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	_, err := configurations.Create(t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:              "names.example.com",
			ClientConfig:      client,
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"},
				},
			}},
			FailurePolicy: &fail, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = configurations.Delete(context.WithoutCancel(t.Context()), namespace, metav1.DeleteOptions{})
	})
}

// eventuallyDenied repeats a dry run until the API server uses the webhook and the error contains text.
func (p *process) eventuallyDenied(t *testing.T, namespace, text string) {
	t.Helper()
	eventually(t, waitLimit, "webhook denies", func(ctx context.Context) error {
		_, err := p.client.CoreV1().ConfigMaps(namespace).Create(
			ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "denied"}},
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}},
		)
		if err == nil {
			return errors.New("allowed")
		}
		if !strings.Contains(err.Error(), text) {
			return err
		}
		return nil
	})
}

const denied = `admission webhook "names.example.com" denied the request: not with this name`

func TestWebhookByURLIsCalled(t *testing.T) {
	t.Parallel()
	p := sharedProcess(t)
	namespace := p.namespace(t)
	var calls atomic.Int32
	server := nameServer(t, &calls)
	server.StartTLS()
	defer server.Close()
	hook := server.URL + "/validate"
	p.installWebhook(t, namespace, admissionregistrationv1.WebhookClientConfig{
		URL: &hook, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	})
	p.eventuallyDenied(t, namespace, denied)
	if _, err := p.client.CoreV1().ConfigMaps(namespace).Create(
		t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "allowed"}}, metav1.CreateOptions{},
	); err != nil {
		t.Errorf("another name: %v, want it allowed", err)
	}
	if calls.Load() < 2 {
		t.Errorf("calls = %d, want at least 2", calls.Load())
	}
}

// A webhook by a reference to a Service is refused at once, until the Service has the address of a local server.
func TestWebhookByServiceIsCalled(t *testing.T) {
	t.Parallel()
	p := sharedProcess(t)
	namespace := p.namespace(t)
	const name = "hooks"
	services := p.client.CoreV1().Services(namespace)
	if _, err := services.Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "hooks"}, Ports: []corev1.ServicePort{{Port: 443}},
		},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey(name+"."+namespace+".svc", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	var calls atomic.Int32
	server := nameServer(t, &calls)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	server.StartTLS()
	defer server.Close()
	p.installWebhook(t, namespace, admissionregistrationv1.WebhookClientConfig{
		Service:  &admissionregistrationv1.ServiceReference{Namespace: namespace, Name: name},
		CABundle: certificate,
	})
	p.eventuallyDenied(t, namespace, "nothing serves service "+namespace+"/"+name)
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"trueup.dev/address":%q}}}`, server.Listener.Addr())
	if _, err := services.Patch(
		t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{},
	); err != nil {
		t.Fatal(err)
	}
	p.eventuallyDenied(t, namespace, denied)
}

// Webhooks elsewhere are refused at once, without a look-up of the name.
func TestWebhookElsewhereIsRefused(t *testing.T) {
	t.Parallel()
	p := sharedProcess(t)
	for hook, want := range map[string]string{
		"https://10.9.8.7/validate":        "connects to loopback addresses only",
		"https://hooks.example.com:9443/x": "looks up no names",
	} {
		namespace := p.namespace(t)
		p.installWebhook(t, namespace, admissionregistrationv1.WebhookClientConfig{URL: &hook})
		p.eventuallyDenied(t, namespace, want)
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
