// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
)

// The API server calls the webhooks of the test as soon as they are served.
func TestWebhooks_MutateValidateAndConvert(t *testing.T) {
	env := ForTest(t, TestOptions{Private: true, CRDs: []any{newCRD("Converted")}})
	hooks := env.Webhooks(t, WebhookOptions{
		Configurations: []any{fstest.MapFS{"webhook/manifests.yaml": {Data: []byte(webhookManifests)}}},
		Conversions:    []string{"converteds.example.com"},
	})
	serveWebhooks(t, hooks)
	api := configMapsIn(t, env, env.Namespace)

	created, err := api.Create(t.Context(), newConfigMap("accepted"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"by": t.Name()}, created.GetLabels()); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if _, err := api.Create(t.Context(), newConfigMap("refused"), metav1.CreateOptions{}); !apierrors.IsForbidden(err) ||
		!strings.Contains(err.Error(), "not this one") {
		t.Errorf("error %v, want the error of the validating webhook", err)
	}

	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1beta1", "kind": "Converted", "metadata": map[string]any{"name": "old"},
	}}
	crs := dynamicClient(t, env.Sandbox).Resource(resource("v1beta1", "Converted")).Namespace(env.Namespace)
	if _, err := crs.Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	got, err := dynamicClient(t, env.Sandbox).Resource(resource("v1", "Converted")).Namespace(env.Namespace).Get(
		t.Context(), "old", metav1.GetOptions{},
	)
	if err != nil {
		t.Fatal(err)
	}
	if from, _, _ := unstructured.NestedString(got.Object, "spec", "from"); from != "example.com/v1beta1" {
		t.Errorf("spec.from = %q: the object was not converted by the webhook", from)
	}
	crd, err := crdClient(t, env.Sandbox).Get(t.Context(), "converteds.example.com", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	if columns := versions[1].(map[string]any)["additionalPrinterColumns"]; columns != nil {
		t.Errorf("the definition still has the column of the probe: %v", columns)
	}
}

// A request that another webhook refuses does not show that a configuration is in use.
func TestWebhooks_AreInUseOnlyIfTheyAreCalled(t *testing.T) {
	env := ForTest(t, TestOptions{})
	// Nothing serves these webhooks, so each creation of a ConfigMap fails.
	env.Webhooks(t, WebhookOptions{Configurations: []any{fstest.MapFS{"a.yaml": {Data: []byte(webhookManifests)}}}})
	w, err := newWebhooks(webhookHost, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r, err := newWebhookRegistrar(env, w, t.Name())
	if err != nil {
		t.Fatal(err)
	}
	probes, err := serveProbes(w)
	if err != nil {
		t.Fatal(err)
	}
	defer probes.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err = r.awaitUse(ctx, "not-registered", probes)
	if err == nil || !strings.Contains(err.Error(), "failed calling webhook") {
		t.Errorf("error %v, want that a webhook refuses the probe", err)
	}
}

// Parallel tests register the same webhooks, and each is only called for its own namespace.
func TestWebhooks_AreCalledForTheNamespaceOfTheTestOnly(t *testing.T) {
	for _, name := range []string{"one", "two"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := ForTest(t, TestOptions{})
			serveWebhooks(
				t, env.Webhooks(t, WebhookOptions{Configurations: []any{fstest.MapFS{"a.yaml": {Data: []byte(webhookManifests)}}}}),
			)
			created, err := configMapsIn(t, env, env.Namespace).Create(t.Context(), newConfigMap("mine"), metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(
				map[string]string{"by": strings.ReplaceAll(t.Name(), "/", ".")}, created.GetLabels(),
			); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
			other, err := configMapsIn(t, env, metav1.NamespaceDefault).Create(
				t.Context(), newConfigMap("refused"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}},
			)
			if err != nil {
				t.Fatalf("in another namespace: %v", err)
			}
			if len(other.GetLabels()) != 0 {
				t.Errorf("the webhook was called for another namespace: labels %v", other.GetLabels())
			}
		})
	}
}

func TestWebhooks_OfAllNamespaces(t *testing.T) {
	env := ForTest(t, TestOptions{})
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "all"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{
			{
				Name:                    "all.example.com",
				AdmissionReviewVersions: []string{"v1"},
				SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
				ClientConfig: admissionregistrationv1.WebhookClientConfig{
					URL: new("https://elsewhere.example.com/validate?x=y"),
				},
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
				// The webhook applies to all namespaces, but must not match objects of other tests.
				ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"of": env.Namespace}},
			},
		},
	}
	serveWebhooks(t, env.Webhooks(t, WebhookOptions{Configurations: []any{configuration}, AllNamespaces: true}))
	object := newConfigMap("refused")
	object.SetLabels(map[string]string{"of": env.Namespace})
	_, err := configMapsIn(t, env, metav1.NamespaceDefault).Create(
		t.Context(), object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}},
	)
	if !apierrors.IsForbidden(err) {
		t.Errorf("error %v, want the error of the webhook", err)
	}
}

func TestWebhooks_AreRemovedWithTheTest(t *testing.T) {
	env := ForTest(t, TestOptions{Private: true, CRDs: []any{newCRD("Restored")}})
	before, err := crdClient(t, env.Sandbox).Get(t.Context(), "restoreds.example.com", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var hooks *Webhooks
	t.Run("part", func(t *testing.T) {
		hooks = env.Webhooks(t, WebhookOptions{
			Configurations: []any{
				fstest.MapFS{"a.yaml": {Data: []byte(webhookManifests)}},
			},
			Conversions: []string{"restoreds.example.com"},
		})
		// Without a server all requests fail, because the API server calls the webhooks as soon as Webhooks returns.
		if _, err := configMapsIn(t, env, env.Namespace).Create(
			t.Context(), newConfigMap("a"), metav1.CreateOptions{},
		); !apierrors.IsInternalError(
			err,
		) {
			t.Errorf("error %v, want an internal error", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := hooks.WaitUntilServed(ctx); err == nil ||
			!strings.Contains(err.Error(), "waiting for a webhook server at "+hooks.address()) {
			t.Errorf("error %v, want one about waiting", err)
		}
		const want = "test " + "TestWebhooks_AreRemovedWithTheTest/part" + " already converts its objects"
		failures := (&recorder{TB: t, name: "second"}).run(
			func(t testing.TB) { env.Webhooks(t, WebhookOptions{Conversions: []string{"restoreds.example.com"}}) },
		)
		if len(failures) != 1 || !strings.Contains(failures[0], want) {
			t.Errorf("failures of a second test: %q, want one with %q", failures, want)
		}
	})
	after, err := crdClient(t, env.Sandbox).Get(t.Context(), "restoreds.example.com", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before.Object["spec"], after.Object["spec"]); diff != "" {
		t.Errorf("the definition was not restored (-want +got):\n%s", diff)
	}
	for _, plural := range []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"} {
		list,
			err := dynamicClient(t, env.Sandbox).Resource(admissionregistrationv1.SchemeGroupVersion.WithResource(plural)).
			List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range list.Items {
			if strings.HasSuffix(item.GetName(), "."+env.Namespace) {
				t.Errorf("%s still exists", item.GetName())
			}
		}
	}
}

// WaitUntilServed does not wait for a server with another certificate: that server has taken the port.
func TestWebhooks_WaitUntilServed_AnotherServer(t *testing.T) {
	other := httptest.NewUnstartedServer(http.NotFoundHandler())
	other.Config.ErrorLog = log.New(io.Discard, "", 0)
	other.StartTLS()
	defer other.Close()
	w, err := newWebhooks(webhookHost, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w.Port = other.Listener.Addr().(*net.TCPAddr).Port
	if err := w.WaitUntilServed(t.Context()); err == nil || !strings.Contains(err.Error(), "another server listens") {
		t.Errorf("error %v, want one about another server", err)
	}
}

func TestWebhookOptions_EveryMistakeIsReported(t *testing.T) {
	o := WebhookOptions{
		Configurations: []any{
			42,
			"absent.yaml",
			(*admissionregistrationv1.MutatingWebhookConfiguration)(nil),
			[]*admissionregistrationv1.ValidatingWebhookConfiguration{{}},
			fstest.MapFS{
				"old.yaml": {
					Data: []byte(
						"apiVersion: admissionregistration.k8s.io/v1beta1\nkind: MutatingWebhookConfiguration\nmetadata: {name: old}\n",
					),
				},
			},
			&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "empty"}},
		},
		Conversions: []string{"Website"},
	}
	_, err := o.prepare()
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"source 1: cannot read webhook configurations from a int: want *MutatingWebhookConfiguration",
		"source 2: stat absent.yaml",
		"source 3: nil",
		"source 4: element 0: metadata.name is required",
		`source 5: old.yaml: document 1: apiVersion "admissionregistration.k8s.io/v1beta1": ` +
			`want admissionregistration.k8s.io/v1`,
		"source 6: webhooks: at least one is required",
		`field Conversions[0]: "Website" is not the name of a CustomResourceDefinition: want <plural>.<group>`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("not reported: %s\n%v", want, err)
		}
	}
	if _, err := (&WebhookOptions{}).prepare(); err == nil ||
		!strings.Contains(err.Error(), "at least one of Configurations and Conversions is required") {
		t.Errorf("for empty options: %v", err)
	}
}

// The directory of a kubebuilder project contains more than webhooks.
func TestReadWebhookConfigurations_OfAKubebuilderProject(t *testing.T) {
	folder := fstest.MapFS{
		"manifests.yaml":       {Data: []byte(webhookManifests)},
		"kustomization.yaml":   {Data: []byte("resources: [manifests.yaml, service.yaml]\n")},
		"kustomizeconfig.yaml": {Data: []byte("nameReference:\n- kind: Service\n")},
		"service.yaml":         {Data: []byte("apiVersion: v1\nkind: Service\nmetadata: {name: webhook-service}\n")},
	}
	found, err := readWebhookConfigurations([]any{folder})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range found {
		names = append(names, c.object.GetName())
	}
	if diff := cmp.Diff([]string{"mutating", "validating"}, names); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	delete(folder, "manifests.yaml")
	if _, err := readWebhookConfigurations([]any{folder}); err == nil ||
		!strings.Contains(err.Error(), "the sources contain no MutatingWebhookConfiguration") {
		t.Errorf("error %v, want one about missing webhooks", err)
	}
}

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
